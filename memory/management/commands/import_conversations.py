"""Import conversations: a turn a line, or an export of ChatGPT or Claude."""

from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser

from memory.ingest.conversation_files import ConversationFile, NoConversations
from memory.management.command_line import ServiceCommand, usage_error
from memory.management.importing import add_import_arguments, existing_path, run_import


class Command(ServiceCommand):
    help = (
        "Import conversations from a file with one turn a line (JSON Lines), or from what ChatGPT or Claude export: "
        "the archive, the folder, or the conversations.json in it. Of exports, what tools and systems say, thoughts "
        "and attachments are left out and counted. Importing again adds nothing, as far as turns have ids. A "
        "message that is longer than a turn may be comes in as several. Bad turns are reported: exit status 1."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", type=Path, metavar="FILE")
        add_import_arguments(parser)

    def handle(self, *, file: Path, **options: Any) -> None:
        source = ConversationFile(path=existing_path(file, is_folder=False))
        try:
            run_import(
                read=source.read,
                size=source.size(),
                command="import_conversations",
                out=self.stdout,
                err=self.stderr,
                options=options,
            )
        except NoConversations as error:
            raise usage_error(f"{file}: {error}") from None
        except OSError as error:
            raise usage_error(f"{file}: {error.strerror or error}") from None
