"""A document's bytes: unpacked, line by line or block by block, with the place of whatever is wrong with them."""

import gzip
import io
import zlib
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO, cast

from regard.errors import CorpusError
from regard.text.corpus import BLOCK_BYTES, BYTE_ORDER_MARK, GZIP_MAGIC, LONGEST_LINE, UTF16_MARKS
from regard.text.documents.part import DocumentOptions

Stream = BinaryIO | io.BufferedIOBase
"""As `sys.stdin.buffer`, or a file opened with "rb"."""


class Document:
    """A stream with its options; read once, by `lines` or by `blocks`."""

    def __init__(self, stream: Stream, options: DocumentOptions, report: Callable[[str], None]) -> None:
        self.options = options
        self.report = report
        self.mark = b""
        """The byte order mark, once the first line is there."""
        self._stream = stream
        self._line = 0

    def place(self, line: int) -> str:
        """A line, for messages."""
        return self.options.place(line)

    def check_languages(self, line: int, source: str, target: str) -> None:
        """Reports languages that are not those of the run."""
        if wrong := self.options.other_language(line, source, target):
            self.report(wrong)

    def lines(self, *, any_bytes: bool = False) -> Iterator[tuple[int, bytes]]:
        """Numbered lines with their ends; LF alone ends a line. UTF-16 raises CorpusError unless `any_bytes`."""
        stream = self._unpacked()
        while raw := self._read(lambda: stream.readline(LONGEST_LINE + 1)):
            self._line += 1
            if len(raw) > LONGEST_LINE:
                raise CorpusError(
                    f"{self.place(self._line)} is longer than {LONGEST_LINE >> 20} MiB. Is it text? Split the line."
                )
            yield self._line, self._first(raw, any_bytes) if self._line == 1 else raw

    def blocks(self) -> Iterator[bytes]:
        """All bytes, a block at a time."""
        stream = self._unpacked()
        while block := self._read(lambda: stream.read(BLOCK_BYTES)):
            self._line += block.count(b"\n")
            yield block

    def decoded(self, raw: bytes, line: int) -> str:
        """The bytes of a line as text; what is not UTF-8 becomes U+FFFD and is reported."""
        try:
            return raw.decode()
        except UnicodeDecodeError as error:
            self.report(f"{self.place(line)}, byte {error.start + 1}: not valid UTF-8; replaced by U+FFFD")
            return raw.decode(errors="replace")

    def _first(self, raw: bytes, any_bytes: bool) -> bytes:
        if b"\0" in raw and not raw.startswith(UTF16_MARKS):
            self.report(f"{self.place(1)} has NUL characters; is it UTF-16 without a byte-order mark? Convert it")
        if raw.startswith(UTF16_MARKS) and not any_bytes:
            raise CorpusError(f"{self.place(1)} is UTF-16. Convert the file: `iconv -f UTF-16 -t UTF-8`.")
        if raw.startswith(BYTE_ORDER_MARK):
            self.mark = BYTE_ORDER_MARK
        return raw.removeprefix(BYTE_ORDER_MARK)

    def _unpacked(self) -> io.BufferedIOBase:
        stream = cast(Any, self._stream)
        buffered = stream if hasattr(stream, "peek") else io.BufferedReader(stream)
        packed = self._read(lambda: buffered.peek(len(GZIP_MAGIC))).startswith(GZIP_MAGIC)
        return gzip.GzipFile(fileobj=buffered) if packed else buffered

    def _read(self, read: Callable[[], bytes]) -> bytes:
        try:
            return read()
        except EOFError:
            what = "the gzip file was cut"
        except (gzip.BadGzipFile, zlib.error) as error:
            what = f"the gzip file is damaged ({error})"
        raise CorpusError(f"{self.place(self._line)}: {what}, somewhere after this line. Fetch or write it again.")


def split_end(raw: bytes) -> tuple[bytes, bytes]:
    """A line and its end: LF, CRLF or nothing."""
    end = b"\r\n" if raw.endswith(b"\r\n") else b"\n" if raw.endswith(b"\n") else b""
    return raw[: len(raw) - len(end)], end
