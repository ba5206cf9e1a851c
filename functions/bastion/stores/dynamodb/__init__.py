"""Accounts and audits in two DynamoDB tables, as ``infra/tables.yaml`` defines them.

::

    client      one boto3 client in threads: two tries, errors translated, round trips metered
    items       DynamoDB's attribute format, and the key of every item
    conditions  every update with its condition, clause by clause
    records     audit records and heads to items and back
    audits      DynamoAuditStore, over the table `chats`
    removal     what is deleted: sweeping, purging
    control     DynamoAccounts, over the table `control`
"""

from bastion.stores.dynamodb.audits import DynamoAuditStore
from bastion.stores.dynamodb.client import DynamoClient, Meter, RoundTrip, dynamodb_client
from bastion.stores.dynamodb.control import DynamoAccounts

__all__ = ["DynamoAccounts", "DynamoAuditStore", "DynamoClient", "Meter", "RoundTrip", "dynamodb_client"]
