// Frames from hostile peers: nothing is allocated on their word, and nonsense is an error, not a crash.
#include "backends/cpu_sim/transport/frame.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "backends/cpu_sim/transport/handshake.h"
#include "core/base/error.h"

namespace ranklab::cpu_sim {
namespace {

TEST(Frame, ComesBackFromAnyCutting) {
  const std::string payload = Packer().number(-7).text("tp[0 1]").numbers(std::vector<int>{3, 1}).bytes();
  const std::string bytes = frame_bytes(FrameType::kPost, payload) + frame_bytes(FrameType::kAlive);
  for (size_t cut = 1; cut < bytes.size(); ++cut) {
    FrameReader reader(1024);
    reader.feed(bytes.substr(0, cut));
    std::vector<Frame> frames;
    while (auto frame = reader.next()) frames.push_back(*frame);
    reader.feed(bytes.substr(cut));
    while (auto frame = reader.next()) frames.push_back(*frame);
    ASSERT_EQ(frames.size(), 2u);
    Unpacker in(frames[0].payload);
    EXPECT_EQ(in.number(), -7);
    EXPECT_EQ(in.text(), "tp[0 1]");
    EXPECT_THAT(in.numbers(), testing::ElementsAre(3, 1));
    EXPECT_THROW(in.number(), Error);
    EXPECT_EQ(frames[1].type, FrameType::kAlive);
  }
}

TEST(Frame, LengthsAreCheckedBeforeTheyAreBelieved) {
  FrameReader reader(100);
  reader.feed(frame_bytes(FrameType::kSet, std::string(101, 'x')).substr(0, 16));
  EXPECT_THROW(reader.next(), Error);
  FrameReader other(100);
  other.feed("GET / HTTP/1.1\r\n\r\n");
  EXPECT_THROW(other.next(), Error);
  const std::string lie = Packer().number(int64_t{1} << 60).bytes();
  EXPECT_THROW(Unpacker(lie).text(), Error);
  EXPECT_THROW(Unpacker(lie).numbers(), Error);
}

TEST(Frame, RandomBytesNeverCrash) {
  std::mt19937 random(1);
  for (int round = 0; round < 20'000; ++round) {
    std::string bytes(random() % 96, '\0');
    for (char& byte : bytes) byte = static_cast<char>(random() % (round % 2 == 0 ? 256 : 4));
    try {
      Unpacker in(bytes);
      unpack_hello(in);
      Unpacker again(bytes);
      again.numbers();
      again.text();
    } catch (const Error&) {
    }
  }
}

TEST(Handshake, AProofNeedsTheTokenAndCoversWhatIsSaid) {
  Hello hello;
  hello.rank = 1;
  hello.world_size = 2;
  hello.nonce = new_nonce();
  const std::string challenge = new_nonce();
  const std::string proof = member_proof("secret", challenge, hello);
  EXPECT_TRUE(same_secret(proof, member_proof("secret", challenge, hello)));
  EXPECT_FALSE(same_secret(proof, member_proof("other", challenge, hello)));
  EXPECT_FALSE(same_secret(proof, member_proof("secret", new_nonce(), hello))) << "a recorded proof is worth nothing";
  hello.rank = 0;
  EXPECT_FALSE(same_secret(proof, member_proof("secret", challenge, hello)));
  EXPECT_NE(new_token(), new_token());
  EXPECT_EQ(new_token().size(), 64u);
}

}  // namespace
}  // namespace ranklab::cpu_sim
