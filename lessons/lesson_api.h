// The interface of ranklab for exercises: one group of ranks and its collectives, on plain spans of doubles. It does
// not include torch, so an exercise compiles in about a second. Every verb behaves as in core/comm/communicator.h: all
// members make the same calls in the same order; error messages give the file and line of your calls. Thread rule: a
// Comm belongs to one rank's thread.
#pragma once
#include <cstddef>
#include <source_location>
#include <span>

#ifndef __cpp_lib_source_location
#error "exercises need a compiler with std::source_location: g++ 11 or newer, clang 16 or newer"
#endif

namespace ranklab::lesson {

class Comm {
 public:
  using Site = std::source_location;
  virtual ~Comm() = default;

  virtual int rank() const = 0;  // this rank, 0 .. size() - 1
  virtual int size() const = 0;

  // Messages. send() returns when the receiver has received the data, so two ranks that both send first wait forever.
  void send(std::span<const double> data, int to, Site site = Site::current()) { do_send(data, to, site); }
  void recv(std::span<double> data, int from, Site site = Site::current()) { do_recv(data, from, site); }
  // Sends and receives at the same time: one step on a link that carries both directions. The spans must not overlap.
  void send_recv(std::span<const double> out, int to, std::span<double> in, int from, Site site = Site::current()) {
    do_send_recv(out, to, in, from, site);
  }

  // Collectives. all_reduce is in place: afterwards every rank holds the sum.
  void all_reduce(std::span<double> data, Site site = Site::current()) { wait(start_all_reduce(data, site)); }
  // mine [n] -> all [size x n], in rank order
  void all_gather(std::span<const double> mine, std::span<double> all, Site site = Site::current()) {
    do_all_gather(mine, all, site);
  }
  // all [size x n] -> mine [n]: this rank's shard of the sum
  void reduce_scatter(std::span<const double> all, std::span<double> mine, Site site = Site::current()) {
    do_reduce_scatter(all, mine, site);
  }

  // Every rank sends a piece to every rank: `send` holds the number of elements of `out` for each rank, rank 0's first;
  // `recv` the number received from each. Zeros are allowed.
  void all_to_all(std::span<const double> out, std::span<const size_t> send, std::span<double> in,
                  std::span<const size_t> recv, Site site = Site::current()) {
    do_all_to_all(out, send, in, recv, site);
  }

  // Starts an all_reduce and returns at once; `data` must not be touched before wait(ticket). Tickets count from 0.
  int start_all_reduce(std::span<double> data, Site site = Site::current()) { return do_start_all_reduce(data, site); }
  // Starts a send_recv and returns at once. Before wait(ticket) `out` must not be changed; `in` is filled by it.
  int start_send_recv(std::span<const double> out, int to, std::span<double> in, int from,
                      Site site = Site::current()) {
    return do_start_send_recv(out, to, in, from, site);
  }
  virtual void wait(int ticket) = 0;

 protected:
  virtual void do_send(std::span<const double> data, int to, Site site) = 0;
  virtual void do_recv(std::span<double> data, int from, Site site) = 0;
  virtual void do_send_recv(std::span<const double> out, int to, std::span<double> in, int from, Site site) = 0;
  virtual void do_all_gather(std::span<const double> mine, std::span<double> all, Site site) = 0;
  virtual void do_reduce_scatter(std::span<const double> all, std::span<double> mine, Site site) = 0;
  virtual void do_all_to_all(std::span<const double> out, std::span<const size_t> send, std::span<double> in,
                             std::span<const size_t> recv, Site site) = 0;
  virtual int do_start_all_reduce(std::span<double> data, Site site) = 0;
  virtual int do_start_send_recv(std::span<const double> out, int to, std::span<double> in, int from, Site site) = 0;
};

}  // namespace ranklab::lesson
