"""The first migrations hold every documented table with its exact name and columns."""

from __future__ import annotations

import pytest
from django.core.management import call_command
from django.db import connection

TABLES = {
    "messages": "id message_id channel sender sender_id message agent files conversation_id from_agent status "
    "retry_count last_error claimed_by created_at updated_at run_id person team thread parent_id hop available_at "
    "error_class manual_retries",
    "responses": "id message_id channel sender sender_id message original_message agent files metadata status "
    "created_at acked_at conversation_id thread retry_count available_at last_error parts_sent provider_ref",
    "chat_messages": "id team_id from_agent message created_at",
    "agent_messages": "id agent_id role channel sender message_id content created_at conversation_id",
    "intakes": "source external_id message_id conversation_id",
    "conversations": "id person team messages posts open cost last_at state",
    "lanes": "name run_id holder beat blocked_until blocked_reason completed",
    "runs": "id lane agent provider model attempt host pid started finished wait_ms run_ms outcome error_class error "
    "exit_code input_tokens output_tokens cost stop_by",
    "run_messages": "run_id message_id parent_id hop",
    "events": "id",
    "sessions": "agent_id provider thread session_id state",
    "spend": "scope day reserved spent",
    "processes": "pulse",
    "settings": "key value",
    "audit": "actor action subject",
    "jobs": "name status done total",
    "pins": "row_id until",
    "rollups": "hour metric value",
    "agents": "id name provider model working_directory system_prompt batching daily_budget",
    "teams": "id name leader_agent",
    "team_members": "team_id agent_id position",
    "custom_providers": "id name harness base_url api_key model",
    "senders": "channel sender_id sender status rights reach",
    "chat_defaults": "channel chat_id",
    "schedules": "id label cron run_at agent_id message channel sender enabled created_at",
    "due_times": "schedule_id due_at",
    "tokens": "digest scope last_used_at revoked_at",
}


@pytest.mark.django_db
@pytest.mark.parametrize("table", TABLES)
def test_a_documented_table_has_its_columns(table: str) -> None:
    with connection.cursor() as cursor:
        found = {
            column.name for column in connection.introspection.get_table_description(cursor, table)
        }
    assert set(TABLES[table].split()) <= found


@pytest.mark.django_db
@pytest.mark.sqlite_only
@pytest.mark.parametrize("table", ["runs", "events", "messages", "responses"])
def test_ids_are_never_used_again(table: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT sql FROM sqlite_master WHERE name = %s", [table])
        assert "AUTOINCREMENT" in cursor.fetchone()[0]


@pytest.mark.django_db
def test_no_migration_is_missing() -> None:
    call_command("makemigrations", check=True, dry_run=True, verbosity=0)
