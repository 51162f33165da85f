// A world whose ranks are processes, on this host or on several: this process runs one of them. Every process has a
// control connection to the coordinator in rank 0's process, which matches calls as a thread world does
// (switchboard.h); the bytes move with Gloo's algorithms over data connections of our own (unix sockets on one host,
// TCP between hosts), and reductions are added in the same canonical order, so results are bit-identical to a thread
// world's and virtual times are the same. It never hangs: errors are reported with the same messages as in a thread
// world; a process that dies ends the world at once, a stopped one within silence_limit, and one that does not arrive
// at join_timeout, each naming the rank. An error ends every process: after a grace period for the rank to return, the
// process exits with the error's exit code. Whoever knows the token may join. Without a token the world stays on this
// host, and both ends of every connection to rank 0 check that the other belongs to the same user (own_user_socket.h).
// A data connection is used only after both ends have proved a secret that only the world's ranks know
// (data_connect.h). Cost: besides its bytes a call costs two small messages to rank 0 (about 0.1 ms); one control
// thread per process, one coordinator thread in rank 0's process. Thread rule: run() belongs to one thread at a time.
#pragma once
#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "core/base/error.h"
#include "core/comm/process_env.h"
#include "core/comm/world.h"

namespace ranklab {

struct ProcessWorldOptions {
  ProcessEnv env;            // which rank this is and where rank 0 listens
  std::string token;         // the run's secret; empty: processes of one user on this host
  bool unix_sockets = true;  // for data between processes of one user on one host; false: TCP
  int listener_fd = -1;      // rank 0: a listening socket that the launcher opened, instead of opening one
  std::chrono::milliseconds join_timeout{60'000};
  // As in ThreadWorldOptions. 0 also disables silence_limit, so that a debugger may stop a process.
  std::chrono::milliseconds hang_timeout{60'000};
  std::chrono::milliseconds silence_limit{1'500};
  // After an error, how long the rank may take to return before the process exits.
  std::chrono::milliseconds grace{150};
  // Called just before it does. The program may exit itself, if the error is only how a run ends that a signal ended.
  std::function<void(const Error&)> on_stuck = {};
  bool same_call_site = false;
};

// The first run() waits until every rank has joined. It throws kInvalidArgument if the processes contradict each other
// (two processes with one rank, different world sizes, a wrong or missing token), and kTimeout naming ranks that did
// not arrive.
std::unique_ptr<World> make_process_world(ProcessWorldOptions options);

}  // namespace ranklab
