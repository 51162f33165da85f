"""Unpacks a wheel, or a piece of one that begins and ends between two entries, in the order in which the bytes lie.

    unpack_wheel.py PIECE FOLDER PREFIX...     the entries whose names begin with one of PREFIX, into FOLDER

A zip file is read from its directory at the end, which a piece does not have; each entry also carries a header in front
of it, with its name, its size and its checksum, which is enough here. The caller has checked the hash of the piece.
"""
import os
import struct
import sys
import zlib

HEADER = struct.Struct("<4sHHHHHLLLHH")  # the local file header of the zip format (APPNOTE 4.3.7)
STORED, DEFLATED = 0, 8


def unpack_entry(source, target, method, packed, checksum):
    inflate = zlib.decompressobj(-15) if method == DEFLATED else None
    crc = 0
    os.makedirs(os.path.dirname(target), exist_ok=True)
    with open(target, "wb") as out:
        while packed:
            block = source.read(min(1 << 20, packed))
            if not block:
                sys.exit("the piece ends inside " + target)
            packed -= len(block)
            data = inflate.decompress(block) if inflate else block
            crc = zlib.crc32(data, crc)
            out.write(data)
        if inflate:
            data = inflate.flush()
            crc = zlib.crc32(data, crc)
            out.write(data)
    if crc != checksum:
        sys.exit("wrong checksum of " + target)


def main():
    piece, folder, *prefixes = sys.argv[1:]
    with open(piece, "rb") as source:
        while len(header := source.read(HEADER.size)) == HEADER.size:
            signature, _, flags, method, _, _, checksum, packed, _, name_length, extra_length = HEADER.unpack(header)
            if signature != b"PK\x03\x04":
                return  # the directory of a whole wheel: all entries are read
            if flags & 8 or method not in (STORED, DEFLATED) or packed == 0xFFFFFFFF:
                sys.exit("an entry of %s is written in a way that this reader does not know" % piece)
            name = source.read(name_length).decode()
            source.seek(extra_length, os.SEEK_CUR)
            if name.startswith(tuple(prefixes)) and not name.endswith("/") and ".." not in name.split("/"):
                unpack_entry(source, os.path.join(folder, name), method, packed, checksum)
            else:
                source.seek(packed, os.SEEK_CUR)


main()
