// Every way in which members can disagree is refused before a byte moves, naming both calls; every member gets the
// error.
#include <atomic>
#include <thread>

#include "tests/cpu_sim/faults.h"

namespace ranklab::cpu_sim_test {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;

struct Mismatch {
  const char* what;                              // the error's "members disagree on the ..."
  std::vector<std::string> in_text;              // what else it must say
  std::function<void(Communicator&)> even, odd;  // the calls of even and of odd ranks
};

at::Tensor ones(at::IntArrayRef shape, at::ScalarType dtype = at::kFloat) { return at::ones(shape, dtype); }

const Mismatch kMismatches[] = {
    {"verb",
     {": all_reduce(sum) fp32 [4] at mismatch_test.cpp:", ": broadcast(root 0) fp32 [4] at mismatch_test.cpp:"},
     [](Communicator& c) { c.all_reduce(ones({4})); },
     [](Communicator& c) { c.broadcast(ones({4}), 0); }},
    {"verb",  // the order of two calls
     {"all_reduce(sum) fp32 [4]", "all_gather fp32 [4]"},
     [](Communicator& c) { c.all_reduce(ones({4})), c.all_gather(ones({4})); },
     [](Communicator& c) { c.all_gather(ones({4})), c.all_reduce(ones({4})); }},
    {"dtype",
     {"all_reduce(sum) fp32 [4]", "all_reduce(sum) int32 [4]"},
     [](Communicator& c) { c.all_reduce(ones({4})); },
     [](Communicator& c) { c.all_reduce(ones({4}, at::kInt)); }},
    {"shape",  // the order of two calls of the same verb
     {"call #0", "all_reduce(sum) fp32 [4]", "all_reduce(sum) fp32 [5]"},
     [](Communicator& c) { c.all_reduce(ones({4})), c.all_reduce(ones({5})); },
     [](Communicator& c) { c.all_reduce(ones({5})), c.all_reduce(ones({4})); }},
    {"shape",
     {"broadcast(root 0) fp32 [8]", "broadcast(root 0) fp32 [16]"},
     [](Communicator& c) { c.broadcast(ones({8}), 0); },
     [](Communicator& c) { c.broadcast(ones({16}), 0); }},
    {"shape",  // the same number of elements
     {"fp32 [2, 6]", "fp32 [3, 4]"},
     [](Communicator& c) {
       c.all_reduce(ones({2, 6}));
     },
     [](Communicator& c) {
       c.all_reduce(ones({3, 4}));
     }},
    {"shape",
     {"all_gather fp32 [2, 3]", "all_gather fp32 [2, 4]"},
     [](Communicator& c) {
       c.all_gather(ones({2, 3}));
     },
     [](Communicator& c) {
       c.all_gather(ones({2, 4}));
     }},
    {"rows",
     {"gathering rows [3 3 3 3]", "gathering rows [2 2 2 2]"},
     [](Communicator& c) { c.all_gather(ones({3})); },
     [](Communicator& c) { c.all_gather(ones({2})); }},
    {"rows",
     {"keeping rows [1 3 0 0]", "keeping rows [1 1 1 1]"},
     [](Communicator& c) {
       c.reduce_scatter(ones({4}), ReduceOp::kSum, {1, 3, 0, 0});
     },
     [](Communicator& c) { c.reduce_scatter(ones({4})); }},
    {"reduction",
     {"all_reduce(sum)", "all_reduce(max)"},
     [](Communicator& c) { c.all_reduce(ones({4})); },
     [](Communicator& c) { c.all_reduce(ones({4}), ReduceOp::kMax); }},
    {"root",
     {"broadcast(root 0)", "broadcast(root 2)"},
     [](Communicator& c) { c.broadcast(ones({4}), 0); },
     [](Communicator& c) { c.broadcast(ones({4}), 2); }},
    {"rows",
     {"sending rows [1 1 1 1], receiving [1 1 1 1]", "sending rows [2 2 2 2], receiving [2 2 2 2]"},
     [](Communicator& c) { c.all_to_all(ones({4})); },
     [](Communicator& c) { c.all_to_all(ones({8})); }},
};

class MismatchTest : public testing::TestWithParam<Path> {};

TEST_P(MismatchTest, IsRefusedOnEveryMember) {
  for (const Mismatch& m : kMismatches) {
    std::atomic<int> thrown{0};
    const Outcome outcome = run_world(options_of(GetParam(), 4), [&](Endpoint& endpoint, Communicator& comm) {
      try {
        endpoint.global_rank() % 2 == 0 ? m.even(comm) : m.odd(comm);
      } catch (const Error& error) {
        EXPECT_THAT(error.what(), HasSubstr(std::string("members disagree on the ") + m.what));
        ++thrown;
        throw;
      }
    });
    ASSERT_TRUE(outcome.error) << m.what;
    EXPECT_EQ(outcome.error->kind(), ErrorKind::kCommunication);
    EXPECT_THAT(outcome.text(), HasSubstr("world[0 1 2 3] call #0] members disagree on the " + std::string(m.what)));
    // Which two members are compared depends on who came first; one is even and one is odd.
    EXPECT_THAT(outcome.text(), ContainsRegex("got rank (0: .* \\| rank [13]|1: .* \\| rank 2|2: .* \\| rank 3): "));
    for (const std::string& part : m.in_text) EXPECT_THAT(outcome.text(), HasSubstr(part));
    EXPECT_EQ(thrown, 4) << m.what;
    EXPECT_LT(outcome.seconds, 1.0);
  }
}

// Whoever comes first: the member that is alone.
TEST_P(MismatchTest, NamesTheOddOne) {
  for (const int odd : {0, 3, 4}) {
    std::atomic<bool> first_came{false};
    const Outcome outcome = run_world(options_of(GetParam(), 5), [&](Endpoint& endpoint, Communicator& comm) {
      const int rank = endpoint.global_rank();
      while (rank == (odd + 1) % 5 && !first_came) std::this_thread::yield();
      if (rank == odd) first_came = true;
      rank == odd ? comm.all_reduce(ones({5})) : comm.all_reduce(ones({4}));
    });
    const std::string name = "rank " + std::to_string(odd), other = odd == 0 ? "rank 1" : "rank 0";
    EXPECT_THAT(outcome.text(),
                HasSubstr("[" + name + ", world[0 1 2 3 4] call #0] members disagree on the shape; got "));
    EXPECT_THAT(outcome.text(),
                ContainsRegex("got " + name + ": all_reduce.sum. fp32 .5. at [^|]* \\| " + other +
                              ": all_reduce.sum. fp32 .4. at [^|]*, as of rank [1-4] [2-4] [2-4]; want"));
    EXPECT_THAT(outcome.text(), HasSubstr("do: look at " + name + " first"));
  }
}

// Members that disagree, one that waits for one of them, and one that never comes: the error does not wait for the
// last. Rank 1 posts before rank 0, so that they are compared before rank 0 can wait for rank 2, which closes a circle.
TEST_P(MismatchTest, IsToldWhereAMemberCannotCome) {
  const auto disagree = [](Communicator& comm, int rank) { return comm.all_reduce_async(ones({rank == 0 ? 5 : 4})); };
  std::atomic<bool> posted{false};
  const Outcome waits = run_world(options_of(GetParam(), 3), [&](Endpoint& endpoint, Communicator& comm) {
    const int rank = endpoint.global_rank();
    if (rank == 2) comm.recv(ones({1}), 0);
    while (rank == 0 && !posted) std::this_thread::yield();
    const WorkPtr work = disagree(comm, rank);
    posted = true;
    work->wait();
  });
  EXPECT_THAT(waits.text(), HasSubstr("members disagree on the shape"));
  std::atomic<int> told{0};
  const Outcome computes = run_world(options_of(GetParam(), 3), [&](Endpoint& endpoint, Communicator& comm) {
    while (endpoint.global_rank() == 2 && told < 2) std::this_thread::yield();
    try {
      disagree(comm, endpoint.global_rank())->wait();
    } catch (const Error&) {
      ++told;
      throw;
    }
  });
  EXPECT_THAT(computes.text(), HasSubstr("members disagree on the shape"));
  EXPECT_EQ(told, 3);
}

TEST_P(MismatchTest, OfMessages) {
  const auto run = [](const at::Tensor& sent, const at::Tensor& into) {
    return run_world(options_of(GetParam(), 3), [&](Endpoint& endpoint, Communicator& comm) {
      if (endpoint.global_rank() == 2) comm.send(sent, 0, 7);
      if (endpoint.global_rank() == 0) comm.recv(into.clone(), 2, 7);
    });
  };
  const Outcome shape = run(ones({3, 2}), ones({4, 2}));
  EXPECT_THAT(shape.text(), HasSubstr("members disagree on the shape; got rank 2: send(to 0, tag 7) fp32 [3, 2] at "));
  EXPECT_THAT(shape.text(), HasSubstr("| rank 0: recv(from 2, tag 7) fp32 [4, 2] at "));
  EXPECT_THAT(run(ones({2}), ones({2}, at::kInt)).text(), HasSubstr("members disagree on the dtype"));
  EXPECT_FALSE(run(ones({2}), ones({2})).error);
}

// In an all_to_all each pair has to agree, also where the first poster's own rows are fine.
TEST_P(MismatchTest, OfOnePairInAnAllToAll) {
  const Outcome outcome = run_world(options_of(GetParam(), 3), [](Endpoint& endpoint, Communicator& comm) {
    const int rank = endpoint.global_rank();
    std::vector<int64_t> send = {1, 1, 1}, recv = {1, 1, 1};
    if (rank == 1) send = {1, 1, 4};  // rank 2 expects 1
    comm.all_to_all(ones({rank == 1 ? 6 : 3}), send, recv);
  });
  EXPECT_THAT(outcome.text(), HasSubstr("members disagree on the rows"));
  EXPECT_THAT(outcome.text(), HasSubstr("rank 1: all_to_all fp32 [6] sending rows [1 1 4]"));
  EXPECT_THAT(outcome.text(), HasSubstr("| rank 2: all_to_all fp32 [3] sending rows [1 1 1]"));
}

// Two swapped calls that look alike can only be distinguished by their lines.
TEST_P(MismatchTest, OfCallSitesWhenAsked) {
  ThreadWorldOptions options = options_of(GetParam(), 2);
  const auto swapped = [](Endpoint& endpoint, Communicator& comm) {
    const auto loss = [&] { comm.all_reduce(ones({1})); };
    const auto norm = [&] { comm.all_reduce(ones({1})); };
    if (endpoint.global_rank() == 0) loss(), norm();
    if (endpoint.global_rank() == 1) norm(), loss();
  };
  EXPECT_FALSE(run_world(options, swapped).error);
  options.same_call_site = true;
  EXPECT_THAT(run_world(options, swapped).text(), HasSubstr("members disagree on the call site"));
}

INSTANTIATE_TEST_SUITE_P(Paths, MismatchTest, testing::ValuesIn(kPaths), path_name);

}  // namespace
}  // namespace ranklab::cpu_sim_test
