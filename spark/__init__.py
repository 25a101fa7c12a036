"""The data pipeline: retention of history, and questions about what happened.

It stands alone: nothing in here imports a Django app, so the same jobs run on a cluster.
"""
