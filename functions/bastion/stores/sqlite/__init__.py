"""Accounts, chats and audits in one SQLite file: the embedded default. Several processes may share it.

::

    database      one connection on one thread, transactions, the schema and its version
    accounts      SqliteAccounts
    endings       how audits and generations end, as columns
    audits        SqliteAuditStore
    conversation  chats, branches and messages as rows
    generations   the generations' part of SqliteChats
    chats         SqliteChats
    library       SqliteLibrary
"""

from bastion.stores.sqlite.accounts import SqliteAccounts
from bastion.stores.sqlite.audits import SqliteAuditStore
from bastion.stores.sqlite.chats import SqliteChats
from bastion.stores.sqlite.database import SqliteDatabase
from bastion.stores.sqlite.library import SqliteLibrary

__all__ = ["SqliteAccounts", "SqliteAuditStore", "SqliteChats", "SqliteDatabase", "SqliteLibrary"]
