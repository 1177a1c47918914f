import os
import socket

from brokers.ports import free_port, holder_of_port, listening_inodes

TABLE = """\
  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:2384 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 111 1
   1: 0100007F:2384 0100007F:9C40 01 00000000:00000000 00:00000000 00000000     0        0 222 1
   2: 0100007F:1F91 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 333 1
"""


def test_a_listener_is_named_with_its_process() -> None:
    """Whoever listens is told by its number."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        holder = holder_of_port(server.getsockname()[1])
        assert holder is not None
        assert holder.endswith(f"process {os.getpid()}")


def test_a_free_port_has_no_holder() -> None:
    """A port that was just given out as free is held by nobody, and can be taken."""
    port = free_port()
    assert holder_of_port(port) is None
    with socket.create_server(("127.0.0.1", port)):
        pass


def test_only_listeners_of_that_port_count() -> None:
    """Connections, and listeners on other ports, are not the holder."""
    assert listening_inodes(TABLE, 9092) == {"111"}
    assert listening_inodes(TABLE, 8081) == {"333"}
    assert not listening_inodes(TABLE, 2181)
