"""The dead-letter list's view of messages; no table is touched."""

from __future__ import annotations

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("queue_app", "0001_initial")]

    operations = [
        migrations.CreateModel(
            name="DeadLetter",
            fields=[],
            options={"proxy": True, "indexes": [], "constraints": []},
            bases=("queue_app.message",),
        ),
    ]
