// Environment variables through which a fork server gets its settings at its start.
#pragma once

namespace ranklab::fork_server {

inline constexpr char kListenerVariable[] = "RANKLAB_FORK_SERVER_LISTENER";  // the number of its listening socket
inline constexpr char kLibraryVariable[] = "RANKLAB_FORK_SERVER_LIBRARY";  // opened before the first copy; may be empty

}  // namespace ranklab::fork_server
