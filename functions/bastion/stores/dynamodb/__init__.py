"""Accounts, chats and audits in two DynamoDB tables, as ``infra/tables.yaml`` defines them.

::

    client      one boto3 client in threads: two tries, errors translated, round trips metered
    items       DynamoDB's attribute format, and the key of every item
    actions     requests in DynamoDB's form
    conditions  every update with its condition, clause by clause
    records     audit records and heads to items and back
    audits      DynamoAuditStore, over the table `chats`
    places      where chats, lists and libraries are
    removal     what is deleted: sweeping, purging
    control     DynamoAccounts, over the table `control`
    documents   documents of any size, in an item or in parts
    conversation a chat's branches and messages, within one of its lives
    generations the generations' part of DynamoChats
    lists       lists of chats
    chats       DynamoChats, over the table `chats`
    library     DynamoLibrary, over the table `chats`
"""

from bastion.stores.dynamodb.audits import DynamoAuditStore
from bastion.stores.dynamodb.chats import DynamoChats
from bastion.stores.dynamodb.client import DynamoClient, Meter, RoundTrip, dynamodb_client
from bastion.stores.dynamodb.control import DynamoAccounts
from bastion.stores.dynamodb.library import DynamoLibrary

__all__ = [
    "DynamoAccounts",
    "DynamoAuditStore",
    "DynamoChats",
    "DynamoClient",
    "DynamoLibrary",
    "Meter",
    "RoundTrip",
    "dynamodb_client",
]
