"""Accounts and audits in one SQLite file: the embedded default. Several processes may share it.

::

    database   one connection on one thread, transactions, the schema and its version
    audits     SqliteAuditStore
    accounts   SqliteAccounts
"""

from bastion.stores.sqlite.accounts import SqliteAccounts
from bastion.stores.sqlite.audits import SqliteAuditStore
from bastion.stores.sqlite.database import SqliteDatabase

__all__ = ["SqliteAccounts", "SqliteAuditStore", "SqliteDatabase"]
