// What a client and a fork server say to each other: over a unix socket, a request, then an answer.
//
// A program that opens LibTorch spends 0.2 s of processor time before its main() on registering operators, and the
// tests start it more than a thousand times. A fork server (as of American Fuzzy Lop, or Android's zygote) does that
// once: it is the program itself, stopped before main(), and forks a copy of itself for every command line it is asked
// for. A client stands where a test names the program: it hands over its command line, environment, folder and open
// files, and ends as the copy ends.
#pragma once
#include <sched.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace ranklab::fork_server {

// "<name of the server's socket>:<path of the program>", for clients.
inline constexpr char kServerVariable[] = "RANKLAB_FORK_SERVER";

// Names a file to which a client appends the processor time of its copy, in s: nobody who waits for a client sees it.
inline constexpr char kTimesVariable[] = "RANKLAB_FORK_SERVER_TIMES";

constexpr int kMostFiles = 250;  // the kernel passes 253 in one message

// Properties that a process inherits from its starter and that cannot be given to another process afterwards. Compared
// as bytes.
struct Circumstances {
  std::array<rlimit, RLIM_NLIMITS> limits;
  cpu_set_t processors;
  std::array<uint64_t, 2> users;
  std::array<std::array<uint64_t, 2>, 4> places;  // root folder and namespaces
};

inline Circumstances circumstances_of_this_process() {
  Circumstances out;
  std::memset(&out, 0, sizeof out);
  for (int i = 0; i < static_cast<int>(RLIM_NLIMITS); ++i)
    ::getrlimit(static_cast<__rlimit_resource>(i), &out.limits[static_cast<size_t>(i)]);
  ::sched_getaffinity(0, sizeof out.processors, &out.processors);
  out.users = {::geteuid(), ::getegid()};
  constexpr const char* kPlaces[] = {"/", "/proc/self/ns/mnt", "/proc/self/ns/net", "/proc/self/ns/user"};
  for (size_t i = 0; i < out.places.size(); ++i) {
    struct stat status {};
    if (::stat(kPlaces[i], &status) == 0) out.places[i] = {status.st_dev, status.st_ino};
  }
  return out;
}

// Variables that libraries read while they are loaded.
inline bool is_read_while_loading(std::string_view variable) {
  for (const std::string_view prefix : {"LD_", "GLIBC_TUNABLES", "MALLOC_", "OMP_", "GOMP_", "KMP_", "MKL_", "DNNL_",
                                        "ONEDNN_", "ATEN_", "TORCH_", "PYTORCH_", "C10_"})
    if (variable.substr(0, prefix.size()) == prefix) return true;
  return false;
}

struct Request {
  Circumstances circumstances;
  sigset_t blocked_signals, ignored_signals;
  mode_t umask;
  uint32_t argument_count, variable_count, text_bytes;  // the text follows: arguments, then variables, each ended by 0
  int file_count;                                       // passed along, and after them the folder
  std::array<int, kMostFiles> files;                    // their numbers in the client
};

struct Answer {
  bool forked;   // false: the server cannot stand for this process
  int status;    // of the copy, as of waitpid
  double cpu_s;  // its processor time
};

inline sockaddr_un abstract_address(std::string_view name, socklen_t& size) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path + 1, name.data(), name.size());  // a first byte of 0: no file, gone with its last socket
  size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  return address;
}

// False: the other side is gone.
inline bool write_all(int socket, const void* from, size_t bytes) {
  for (const char* at = static_cast<const char*>(from); bytes > 0;) {
    const ssize_t n = ::send(socket, at, bytes, MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    at += n;
    bytes -= static_cast<size_t>(n);
  }
  return true;
}

inline bool read_all(int socket, void* to, size_t bytes) {
  for (char* at = static_cast<char*>(to); bytes > 0;) {
    const ssize_t n = ::recv(socket, at, bytes, 0);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    at += n;
    bytes -= static_cast<size_t>(n);
  }
  return true;
}

}  // namespace ranklab::fork_server
