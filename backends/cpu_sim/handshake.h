// How two processes show each other that they know the run's token without sending it: each signs the other's fresh
// random nonce (HMAC-SHA256, RFC 2104; OpenSSL's). A recorded answer is worth nothing, since nonces never repeat. What
// follows on the connection is neither signed nor encrypted: the network is trusted as far as that.
// Thread rule: pure.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "backends/cpu_sim/frame.h"

namespace ranklab::cpu_sim {

std::string new_nonce();                                   // 32 random bytes
std::string new_token();                                   // 64 hexadecimal digits
bool same_secret(std::string_view a, std::string_view b);  // in constant time

inline constexpr int64_t kProtocolVersion = 1;

struct Hello {
  int64_t version = kProtocolVersion;
  int rank = 0;
  int world_size = 1;
  int64_t attempt = 0;  // of a job that is restarted
  std::string run_id;
  int64_t pid = 0;
  std::string nonce;
  std::string proof;  // by prove()
};
void pack_hello(Packer& packer, const Hello& hello);
Hello unpack_hello(Unpacker& unpacker);

// The member's proof covers all it says of itself; the coordinator's covers both nonces.
std::string member_proof(const std::string& token, const std::string& challenge, const Hello& hello);
std::string coordinator_proof(const std::string& token, const std::string& challenge, const std::string& nonce);

}  // namespace ranklab::cpu_sim
