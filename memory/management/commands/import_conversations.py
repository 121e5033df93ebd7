"""Import conversations: a turn a line, or an export of ChatGPT or Claude."""

from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser

from memory.ingest.conversation_files import ConversationFile, NoConversations
from memory.management.command_line import Report, usage_error
from memory.management.importing import ImportCommand, existing_path


class Command(ImportCommand):
    help = (
        "Import conversations from a file with one turn a line (JSON Lines), or from what ChatGPT or Claude export: "
        "the archive, the folder, or the conversations.json in it. Of exports, what tools and systems say, thoughts "
        "and attachments are left out and counted. Importing again adds nothing, as far as turns have ids. A "
        "message that is longer than a turn may be comes in as several. Bad turns are reported: exit status 1."
    )

    def add_options(self, parser: CommandParser) -> None:
        parser.add_argument("file", type=Path, metavar="FILE")
        super().add_options(parser)

    def run(self, *, file: Path, **options: Any) -> Report:
        source = ConversationFile(path=existing_path(file, is_folder=False))
        try:
            return self.import_found(read=source.read, size=source.size(), command="import_conversations", **options)
        except NoConversations as error:
            raise usage_error(f"{file}: {error}") from None
        except OSError as error:
            raise usage_error(f"{file}: {error.strerror or error}") from None
