"""Where accounts and audits are kept: adapters of `contextshift.ports`, one package a database.

Adapters never import one another; `bastion.bootstrap` chooses.
"""
