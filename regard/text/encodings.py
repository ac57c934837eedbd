"""Text in other encodings than UTF-8, known by the byte order mark before it: read as UTF-8, and written back.

Without a mark text is UTF-8: what else it might be could only be guessed.
"""

import codecs
import gzip
import io
import zlib
from collections.abc import Iterable, Iterator
from typing import Any, BinaryIO, cast

from regard.errors import CorpusError

MARKS = {
    codecs.BOM_UTF32_LE: "utf-32-le",
    codecs.BOM_UTF32_BE: "utf-32-be",
    codecs.BOM_UTF16_LE: "utf-16-le",
    codecs.BOM_UTF16_BE: "utf-16-be",
    b"\x84\x31\x95\x33": "gb18030",
}
"""UTF-32 first, for its mark begins with that of UTF-16. The codecs keep the mark, as U+FEFF."""
LONGEST_MARK = 4
GZIP_MAGIC = b"\x1f\x8b"
GZIP_FORMAT = 31
"""zlib's number for data with gzip's header."""
Stream = BinaryIO | io.BufferedIOBase
"""As `sys.stdin.buffer`, or a file opened with "rb"."""
BLOCK = 1 << 16


def encoding_of(head: bytes) -> str | None:
    """The encoding that a mark at the start tells; None for UTF-8, with or without its own mark."""
    return next((name for mark, name in MARKS.items() if head.startswith(mark)), None)


def refuse_in_xml(head: bytes, place: str) -> None:
    """XML says its encoding itself, and every parser knows UTF-8 and UTF-16; CorpusError for another mark."""
    encoding = encoding_of(head)
    if encoding is not None and not encoding.startswith("utf-16"):
        raise CorpusError(
            f"{place}: the file is {encoding.upper()}, which few programs read. Export it again as UTF-8."
        )


def decoded(data: bytes) -> str:
    """A whole text without its mark; UnicodeDecodeError where it is not in its encoding."""
    return data.decode(encoding_of(data) or "utf-8").removeprefix("\ufeff")


def utf8_blocks(blocks: Iterable[bytes], name: str) -> Iterator[bytes]:
    """The blocks of the file `name` as UTF-8, in which a mark is U+FEFF; never an empty one."""
    decoder: codecs.IncrementalDecoder | None = None
    lines = 0
    for number, block in enumerate(blocks):
        encoding = encoding_of(block) if number == 0 else None
        if encoding is not None:
            decoder = codecs.getincrementaldecoder(encoding)()
        found = block if decoder is None else decoded_block(decoder, block, name, lines)
        lines += found.count(b"\n")
        if found:
            yield found
    if decoder is not None:
        decoded_block(decoder, b"", name, lines, final=True)


def decoded_block(
    decoder: codecs.IncrementalDecoder, block: bytes, name: str, lines: int, *, final: bool = False
) -> bytes:
    try:
        return decoder.decode(block, final).encode()
    except UnicodeDecodeError as error:
        raise CorpusError(
            f"{name} is marked as {error.encoding.upper()}, but somewhere after line {lines:,} it is not valid "
            f"({error.reason}). Write it again, best as UTF-8."
        ) from None


class Utf8Reader(io.RawIOBase):
    """A stream of blocks as a file."""

    mode = "rb"

    def __init__(self, blocks: Iterator[bytes]) -> None:
        self._blocks, self._rest = blocks, b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if not self._rest:
            self._rest = next(self._blocks, b"")
        taken, self._rest = self._rest[: len(buffer)], self._rest[len(buffer) :]
        buffer[: len(taken)] = taken
        return len(taken)


def first_bytes(stream: Any) -> bytes:
    """Enough for a mark, packed or not, or all that can be had at once; they can be read again."""
    if hasattr(stream, "peek"):
        return stream.peek(LONGEST_MARK)
    place = stream.tell()
    head = stream.read(BLOCK)
    stream.seek(place)
    return head


def utf8_stream(stream: Stream, name: str = "the input") -> tuple[Stream, str | None]:
    """A stream as UTF-8 with the encoding that it has; as it is, and None, where it has no mark of another.

    Nothing is waited for beyond the first bytes: someone may be typing.
    """
    buffered = cast(
        Any, stream if hasattr(stream, "peek") or stream.seekable() else io.BufferedReader(cast(Any, stream))
    )
    head = first_bytes(buffered)
    encoding = encoding_of(unpacked_head(head))
    if encoding is None:
        return buffered, None
    if head.startswith(GZIP_MAGIC):
        buffered = gzip.GzipFile(fileobj=buffered)
    blocks = utf8_blocks(iter(lambda: buffered.read1(BLOCK), b""), name)
    return io.BufferedReader(Utf8Reader(blocks)), encoding


def unpacked_head(head: bytes) -> bytes:
    """The first bytes of what is packed, if it is by gzip; what is damaged is told by whoever reads it."""
    if not head.startswith(GZIP_MAGIC):
        return head
    try:
        return zlib.decompressobj(GZIP_FORMAT).decompress(head, LONGEST_MARK)
    except zlib.error:
        return b""


def back_from_utf8(blocks: Iterable[bytes], encoding: str | None) -> Iterator[bytes]:
    """What was read by `utf8_stream`, in its own encoding again; a block may end within a character."""
    if encoding is None:
        yield from blocks
        return
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    for block in blocks:
        yield decoder.decode(block).encode(encoding, "replace")
    yield decoder.decode(b"", True).encode(encoding, "replace")
