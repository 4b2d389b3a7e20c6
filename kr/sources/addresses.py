"""Which network addresses kr connects to (SPEC 3.7). Pure: no look-ups, no connections."""

import ipaddress
import re
from collections.abc import Iterator

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

_NEVER = tuple(
    map(
        ipaddress.ip_network,
        (
            "169.254.0.0/16",  # link-local, with the metadata service of most clouds
            "fe80::/10",
            "fd00:ec2::254/128",  # Amazon
            "fd20:ce::254/128",  # Google
            "100.100.100.200/32",  # Alibaba
            "168.63.129.16/32",  # Azure, a public address
            "192.0.0.192/32",  # Oracle
        ),
    )
)
_PRIVATE = tuple(
    map(
        ipaddress.ip_network,
        (
            "10.0.0.0/8",
            "172.16.0.0/12",
            "192.168.0.0/16",
            "127.0.0.0/8",
            "100.64.0.0/10",
            "198.18.0.0/15",  # what some proxies answer for every name
            "::1/128",
            "fc00::/7",
        ),
    )
)
# Python's tables hold these, or some addresses in them, to be global.
_NOT_GLOBAL = tuple(
    map(
        ipaddress.ip_network,
        (
            "192.0.0.0/24",  # for protocols: no page is served there (RFC 6890)
            "192.88.99.0/24",
            "64:ff9b:1::/48",
            "2001::/23",
            "3fff::/20",
            "5f00::/16",
            "fec0::/10",
        ),
    )
)
_NEVER_REASON = "is a link-local or metadata address"
_NAT64 = ipaddress.ip_network("64:ff9b::/96")
_COMPATIBLE = ipaddress.ip_network("::/96")
_TRANSLATED = ipaddress.ip_network("::ffff:0:0:0/96")
_ISATAP = re.compile(r":0?[02]00:5efe:")


def is_metadata_address(text: str) -> bool:
    """Whether ``text`` is a link-local or metadata address, in whatever form: never connected to (SPEC 3.7)."""
    return address_refusal(text, allow_private=True) == _NEVER_REASON


def address_refusal(text: str, *, allow_private: bool) -> str | None:
    """Say why the address ``text`` is not connected to, or None when it is.

    IPv4 addresses inside IPv6 ones (mapped, compatible, translated, 6to4, NAT64, Teredo, ISATAP) are held to
    the same rules. ``allow_private`` lets private and loopback addresses pass; link-local, metadata,
    multicast, reserved and unspecified ones never do.
    """
    try:
        address = ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return "is no address"
    inner = tuple(_embedded(address)) if isinstance(address, ipaddress.IPv6Address) else ()
    for candidate in (address, *inner):
        if any(candidate in network for network in _NEVER if network.version == candidate.version):
            return _NEVER_REASON
        if candidate.is_unspecified or candidate.is_multicast:
            return "is no single host's address"
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        return address_refusal(str(address.ipv4_mapped), allow_private=allow_private)
    if any(address in network for network in _PRIVATE if network.version == address.version):
        return None if allow_private else "is a private address"
    if not _is_global(address) or not all(map(_is_global, inner)):
        return "is no public address"
    return None


def is_private_name(host: str) -> bool:
    """Whether a host name means this machine whatever a name server says (RFC 6761)."""
    return host == "localhost" or host.endswith(".localhost")


def _is_global(address: Address) -> bool:
    if any(address in network for network in _NOT_GLOBAL if network.version == address.version):
        return False
    if isinstance(address, ipaddress.IPv6Address) and address.is_reserved:
        return address in _NAT64
    return address.is_global and not address.is_reserved


def _embedded(address: ipaddress.IPv6Address) -> Iterator[ipaddress.IPv4Address]:
    if address.ipv4_mapped is not None:
        yield address.ipv4_mapped
    if address.sixtofour is not None:
        yield address.sixtofour
    if address.teredo is not None:
        yield from address.teredo
    tail = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    if (
        address in _NAT64
        or address in _TRANSLATED
        or _ISATAP.search(address.exploded)
        or (address in _COMPATIBLE and int(address) > 1)
    ):
        yield tail
