// Data connections between ranks: who may make one, and how messages move on it.
#include "backends/cpu_sim/transport/peer_links.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <future>
#include <list>
#include <optional>
#include <thread>
#include <vector>

#include "backends/cpu_sim/transport/data_connect.h"
#include "backends/cpu_sim/transport/frame.h"
#include "backends/cpu_sim/transport/handshake.h"
#include "backends/cpu_sim/transport/thread_links.h"
#include "core/base/error.h"

namespace ranklab::cpu_sim {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;
using Buffer = std::unique_ptr<gloo::transport::UnboundBuffer>;

constexpr milliseconds kLimit{20'000};

std::string error_of(const std::function<void()>& what) {
  try {
    what();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "no error";
}

// Two ranks of one process, connected over TCP.
class Pair : public testing::Test {
 protected:
  Pair() : links_(connect_threads(2)) {
    for (int seat = 0; seat < 2; ++seat)
      contexts_.push_back(links_[static_cast<size_t>(seat)]->context("pair", {0, 1}, seat, kLimit));
  }
  Buffer buffer(int rank, std::vector<char>& bytes) {
    return contexts_[static_cast<size_t>(rank)]->createUnboundBuffer(bytes.data(), bytes.size());
  }
  std::vector<std::shared_ptr<PeerLinks>> links_;
  GlooContexts contexts_;
};

TEST_F(Pair, LargeMessagesBothWaysAtOnceArriveWhole) {
  std::vector<char> sent[2], received[2];
  for (int rank = 0; rank < 2; ++rank) {
    sent[rank].resize(48 << 20);
    for (size_t i = 0; i < sent[rank].size(); ++i) sent[rank][i] = static_cast<char>(i * 31 + rank);
    received[rank].resize(sent[rank].size());
  }
  std::vector<Buffer> out, in;
  for (int rank = 0; rank < 2; ++rank) {
    out.push_back(buffer(rank, sent[rank]));
    in.push_back(buffer(rank, received[rank]));
    out.back()->send(1 - rank, 7);
  }
  for (int rank = 0; rank < 2; ++rank) in[static_cast<size_t>(rank)]->recv(1 - rank, 7);
  for (size_t rank = 0; rank < 2; ++rank) {
    in[rank]->waitRecv(kLimit);
    out[rank]->waitSend(kLimit);
  }
  EXPECT_TRUE(sent[0] == received[1]);
  EXPECT_TRUE(sent[1] == received[0]);
}

TEST_F(Pair, AMessageThatNobodyTakesYetHoldsUpNoOther) {
  std::vector<char> first(4 << 20, 'a'), second(8, 'b'), got_first(4 << 20), got_second(8);
  const Buffer out1 = buffer(0, first), out2 = buffer(0, second);
  out1->send(1, 1);
  out2->send(1, 2);
  const Buffer in2 = buffer(1, got_second);
  in2->recv(0, 2);
  in2->waitRecv(kLimit);
  EXPECT_TRUE(got_second == second);
  const Buffer in1 = buffer(1, got_first);
  in1->recv(0, 1);
  in1->waitRecv(kLimit);
  EXPECT_TRUE(got_first == first);
}

TEST_F(Pair, SlotsAndGroupsAreApartAndASlotKeepsItsOrder) {
  std::vector<char> sent[3] = {{'x'}, {'y'}, {'z'}}, received[3] = {{0}, {0}, {0}};
  const auto other = links_[0]->context("another group", {0, 1}, 0, kLimit);
  const auto other_peer = links_[1]->context("another group", {0, 1}, 1, kLimit);
  const Buffer a = buffer(0, sent[0]), b = buffer(0, sent[1]);
  const Buffer c = other->createUnboundBuffer(sent[2].data(), 1);
  a->send(1, 5);
  b->send(1, 5);
  c->send(1, 5);
  const Buffer third = other_peer->createUnboundBuffer(received[2].data(), 1);
  third->recv(0, 5);
  third->waitRecv(kLimit);
  for (int i = 0; i < 2; ++i) {
    const Buffer in = buffer(1, received[i]);
    in->recv(0, 5);
    in->waitRecv(kLimit);
  }
  EXPECT_EQ(std::string({received[0][0], received[1][0], received[2][0]}), "xyz");
}

TEST_F(Pair, ASizeDifferenceIsAnErrorAtBothEnds) {
  std::vector<char> four(4), eight(8);
  const Buffer out = buffer(0, four), in = buffer(1, eight);
  out->send(1, 3);
  in->recv(0, 3);
  EXPECT_THAT(error_of([&] { in->waitRecv(kLimit); }), HasSubstr("rank 0 sent 4 bytes, rank 1 receives 8"));
  EXPECT_THAT(error_of([&] { out->waitSend(kLimit); }), HasSubstr("rank 0 sent 4 bytes, rank 1 receives 8"));
  // The link lives on.
  std::vector<char> again(4, 'q'), got(4);
  const Buffer more = buffer(0, again), taken = buffer(1, got);
  more->send(1, 3);
  taken->recv(0, 3);
  taken->waitRecv(kLimit);
  EXPECT_TRUE(got == again);
}

TEST_F(Pair, AClosedGroupWakesThePeerAndNoOtherGroup) {
  const auto other = links_[0]->context("another group", {0, 1}, 0, kLimit);
  const auto other_peer = links_[1]->context("another group", {0, 1}, 1, kLimit);
  std::vector<char> waiting(4), passing(4, 'p'), passed(4);
  const Buffer in = buffer(1, waiting);
  in->recv(0, 1);
  contexts_[0]->closeConnections();
  EXPECT_THAT(error_of([&] { in->waitRecv(kLimit); }), HasSubstr("closed by a failing member"));
  const Buffer late = buffer(1, waiting);
  EXPECT_THAT(error_of([&] { late->recv(0, 2); }), HasSubstr("closed by a failing member"));
  const Buffer out = other->createUnboundBuffer(passing.data(), 4);
  const Buffer taken = other_peer->createUnboundBuffer(passed.data(), 4);
  out->send(1, 1);
  taken->recv(0, 1);
  taken->waitRecv(kLimit);
  EXPECT_TRUE(passed == passing);
}

TEST_F(Pair, APeerThatLeavesWakesWhoWaitsForIt) {
  std::vector<char> bytes(4);
  const Buffer in = buffer(1, bytes);
  in->recv(0, 1);
  links_[0]->fail("the world failed");
  EXPECT_THAT(error_of([&] { in->waitRecv(kLimit); }), HasSubstr("rank 0: it closed the connection"));
}

// Without the thread that reads: what is sent stays in the socket until the test asks for it.
TEST(DataLink, ABufferThatGoesAwayHalfMovedEndsTheLinkAndTouchesNothing) {
  int ends[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends), 0);
  const Socket epoll(::epoll_create1(0));
  DataLink sender(Socket(ends[0]), "rank 1", epoll.get()), receiver(Socket(ends[1]), "rank 0", epoll.get());
  std::vector<char> sent(4 << 20, 's'), received(4 << 20);
  const auto out = std::make_shared<BufferState>(), in = std::make_shared<BufferState>();
  in->issued();
  receiver.recv({1, 1}, {{in, received.data(), received.size()}, 1, 0});
  sender.read_some();
  out->issued();
  sender.send({1, 1}, {{out, sent.data(), sent.size()}, 0, 1});
  receiver.read_some();  // some of it
  sender.forget(out.get());
  sent.assign(sent.size(), 'x');  // its memory is somebody else's
  while (in->has_pending()) receiver.read_some();
  EXPECT_THAT(error_of([&] { in->wait(Direction::kRecv, nullptr, kLimit); }),
              HasSubstr("rank 0: it closed the connection"));
  EXPECT_EQ(std::count(received.begin(), received.end(), 'x'), 0);
  EXPECT_GT(std::count(received.begin(), received.end(), 's'), 0);
  EXPECT_THAT(error_of([&] {
                sender.send({1, 2}, {{out, sent.data(), 1}, 0, 1});
              }),
              HasSubstr("rank 1: a message was given up half way"));
}

TEST(DataLink, WhatIsNoMessageEndsTheLink) {
  int ends[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends), 0);
  const Socket epoll(::epoll_create1(0)), raw(ends[1]);
  DataLink link(Socket(ends[0]), "rank 1", epoll.get());
  std::vector<char> bytes(16);
  const auto in = std::make_shared<BufferState>();
  in->issued();
  link.recv({1, 1}, {{in, bytes.data(), bytes.size()}, 0, 1});
  // A payload of another slot, which nobody waits for: kData, group, slot, length.
  const uint64_t header[4] = {1, 1, 2, 1u << 30};
  ASSERT_EQ(::send(raw.get(), header, sizeof header, 0), static_cast<ssize_t>(sizeof header));
  link.read_some();
  EXPECT_THAT(error_of([&] { in->wait(Direction::kRecv, nullptr, kLimit); }),
              HasSubstr("rank 1: it sent a message that nobody expects"));
}

// What the ranks of one world know of each other.
class Board {
 public:
  PeerStore store() {
    return {.set = [this](const auto& key, const auto& value) { slot(key).set_value(value); },
            .get = [this](const auto& key) { return value(key).get(); }};
  }

 private:
  struct Slot {
    std::promise<std::string> promise;
    std::shared_future<std::string> value = promise.get_future().share();
  };
  std::promise<std::string>& slot(const std::string& key) {
    const std::lock_guard lock(mutex_);
    return slots_[key].promise;
  }
  std::shared_future<std::string> value(const std::string& key) {
    const std::lock_guard lock(mutex_);
    return slots_[key].value;
  }
  std::mutex mutex_;
  std::map<std::string, Slot> slots_;
};

ConnectOptions options(int rank, const std::string& token, int timeout_ms, bool unix_sockets = true) {
  return {.rank = rank,
          .world_size = 2,
          .token = token,
          .run_id = "run",
          .address = "127.0.0.1",
          .unix_sockets = unix_sockets,
          .timeout = milliseconds(timeout_ms)};
}

TEST(ConnectPeers, OneHostMeansUnixSockets) {
  Board board;
  auto second = std::async(std::launch::async, [&] { return connect_peers(options(1, "t", 20'000), board.store()); });
  const PeerSockets first = connect_peers(options(0, "t", 20'000), board.store());
  EXPECT_TRUE(first.all_unix);
  EXPECT_TRUE(second.get().all_unix);
  EXPECT_EQ(peer_user(first.by_rank.at(1)), static_cast<int64_t>(::geteuid()));
}

TEST(ConnectPeers, WhoDoesNotKnowTheTokenIsNotLetIn) {
  for (const bool unix_sockets : {true, false}) {
    Board board;
    auto stranger = std::async(std::launch::async, [&] {
      EXPECT_THROW(connect_peers(options(1, "another", 500, unix_sockets), board.store()), Error);
    });
    try {
      connect_peers(options(0, "token", 700, unix_sockets), board.store());
      ADD_FAILURE() << "it was let in";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kTimeout);
      EXPECT_THAT(error.what(), HasSubstr("[data connections, rank 0] rank 1 does not connect; got nobody who knows"));
    }
    stranger.get();
  }
}

// A process that listens where rank 0 said it would, without the secret: its answer to a rank's hello.
using FalseAnswer = std::function<std::string(const std::string& nonce, const Hello& hello)>;

// RETURNS: what rank 1 says of it.
std::string reached_instead_of_rank_zero(const FalseAnswer& answer) {
  Board board;
  const Socket listener = listen_on("127.0.0.1", 0);
  board.store().set("data/secret", new_nonce());
  board.store().set("data/0", Packer().text("").number(0).text("").text("127.0.0.1").number(port_of(listener)).bytes());
  auto rank = std::async(std::launch::async,
                         [&] { return error_of([&] { connect_peers(options(1, "token", 2'000), board.store()); }); });
  std::list<std::pair<Socket, FrameReader>> visitors;
  const std::string nonce = new_nonce();
  int answers = 0;
  while (rank.wait_for(milliseconds(2)) != std::future_status::ready) {
    if (Socket visitor = accept_one(listener); visitor.is_open()) {
      send_some(visitor, frame_bytes(FrameType::kChallenge, Packer().text(nonce).bytes()), 0);
      visitors.emplace_back(std::move(visitor), FrameReader(1 << 12));
    }
    for (auto& [socket, reader] : visitors) {
      std::string bytes;
      if (receive_some(socket, bytes) > 0) reader.feed(bytes);
      const std::optional<Frame> frame = reader.next();
      if (!frame) continue;
      Unpacker in(frame->payload);
      const std::string proof = answer(nonce, unpack_hello(in));
      send_some(socket, frame_bytes(FrameType::kWelcome, Packer().text(proof).bytes()), 0);
      ++answers;
    }
  }
  EXPECT_GT(answers, 0) << "else it was not asked";
  return rank.get();
}

TEST(ConnectPeers, WhoListensAndCannotProveTheSecretIsNotBelieved) {
  const auto told = HasSubstr("rank 0 cannot be reached; got no answer that proves the secret at 127.0.0.1:");
  const FalseAnswer answers[] = {
      [](const auto&, const Hello&) { return std::string(); }, [](const auto&, const Hello&) { return new_nonce(); },
      [](const auto&, const Hello& hello) { return hello.proof; },  // what the rank itself said, back
      [](const std::string& nonce, const Hello& hello) {
        return coordinator_proof("token", nonce, hello.nonce);  // the run's, and not the data connections'
      }};
  std::vector<std::future<std::string>> errors;  // each comes when the rank's time is over
  for (const FalseAnswer& answer : answers)
    errors.push_back(std::async(std::launch::async, reached_instead_of_rank_zero, answer));
  for (std::future<std::string>& error : errors) EXPECT_THAT(error.get(), told);
}

// Each end signs what the other has just drawn, in its own words.
TEST(Handshake, NoAnswerServesTwice) {
  EXPECT_NE(new_nonce(), new_nonce());
  Hello hello{.rank = 1, .world_size = 2, .run_id = "run", .nonce = new_nonce(), .proof = {}};
  const std::string challenge = new_nonce(), proof = member_proof("t", challenge, hello);
  EXPECT_EQ(proof, member_proof("t", challenge, hello));
  EXPECT_NE(proof, member_proof("t", new_nonce(), hello));
  EXPECT_NE(proof, member_proof("another", challenge, hello));
  for (Hello other : {Hello{.rank = 2, .world_size = 2, .run_id = "run", .nonce = hello.nonce, .proof = {}},
                      Hello{.rank = 1, .world_size = 3, .run_id = "run", .nonce = hello.nonce, .proof = {}},
                      Hello{.rank = 1, .world_size = 2, .run_id = "other", .nonce = hello.nonce, .proof = {}},
                      Hello{.rank = 1, .world_size = 2, .run_id = "run", .nonce = new_nonce(), .proof = {}}})
    EXPECT_NE(proof, member_proof("t", challenge, other));
  const std::string welcome = coordinator_proof("t", challenge, hello.nonce);
  EXPECT_NE(welcome, coordinator_proof("t", challenge, new_nonce()));
  EXPECT_NE(welcome, coordinator_proof("t", new_nonce(), hello.nonce));
  EXPECT_NE(welcome, coordinator_proof("t", hello.nonce, challenge));
  EXPECT_NE(welcome, proof);
}

TEST(ConnectPeers, AStrangerInFrontHoldsNobodyUp) {
  Board board;
  auto first =
      std::async(std::launch::async, [&] { return connect_peers(options(0, "t", 20'000, false), board.store()); });
  // Silent connections on the listening port, as many as it keeps and more.
  const std::string published = board.store().get("data/0");
  std::vector<Socket> strangers;
  int64_t port = 0;  // the last number of what rank 0 published
  std::memcpy(&port, published.data() + published.size() - sizeof port, sizeof port);
  for (int i = 0; i < 300; ++i)
    if (auto socket = connect_to("127.0.0.1", static_cast<int>(port), milliseconds(1000)))
      strangers.push_back(std::move(*socket));
  EXPECT_GT(strangers.size(), 250u);
  EXPECT_EQ(connect_peers(options(1, "t", 20'000, false), board.store()).by_rank.size(), 1u);
  EXPECT_EQ(first.get().by_rank.size(), 1u);
}

TEST(ConnectPeers, AnotherListenersTokenIsNoToken) {
  const DataTokenOf of{"token", "secret", "run", 0, 1};
  EXPECT_EQ(data_token(of), data_token(of));
  for (const DataTokenOf& other :
       {DataTokenOf{"other", "secret", "run", 0, 1}, DataTokenOf{"token", "other", "run", 0, 1},
        DataTokenOf{"token", "secret", "other", 0, 1}, DataTokenOf{"token", "secret", "run", 1, 1},
        DataTokenOf{"token", "secret", "run", 0, 2}})
    EXPECT_NE(data_token(of), data_token(other));
}

}  // namespace
}  // namespace ranklab::cpu_sim
