"""`%v{unpack[>I]}`: binary input as readable text, letter by letter as Python's struct spells them.

< >   what follows is little, big endian     x   a space      b B h H i I q Q   numbers of 1, 2, 4, 8 bytes
c .   one character     s   the rest as text     $   nothing may be left
"""

from __future__ import annotations

from struct import Struct

LETTERS = "<>xbBhHiIqQc.s$"
_NUMBERS = {order + letter: Struct(order + letter) for order in "<>" for letter in "bBhHiIqQ"}


def unpack_text(data: bytes, letters: str) -> bytes:
    """What does not fit is said in the output, where one looks for the value."""
    out = bytearray()
    order, at = "<", 0
    for letter in letters:
        if letter in "<>":
            order = letter
        elif letter == "x":
            out += b" "
        elif letter == "s":
            out += data[at:]
            at = len(data)
        elif letter == "$":
            if at < len(data):
                return bytes(out) + b"(%d bytes left)" % (len(data) - at)
        elif letter in "c.":
            if at >= len(data):
                return bytes(out) + b"(too short for %s)" % letter.encode()
            out.append(data[at])
            at += 1
        else:
            number = _NUMBERS[order + letter]
            if at + number.size > len(data):
                return bytes(out) + b"(too short for %s)" % letter.encode()
            out += b"%d" % number.unpack_from(data, at)[0]
            at += number.size
    return bytes(out)
