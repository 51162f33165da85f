#include "backends/cpu_sim/transport/handshake.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <sys/random.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "core/base/error.h"
#include "core/base/text.h"

namespace ranklab::cpu_sim {
namespace {

constexpr size_t kNonceBytes = 32;

std::string sign(const std::string& token, const std::string& text) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> out{};
  unsigned int length = 0;
  HMAC(EVP_sha256(), token.data(), static_cast<int>(token.size()), reinterpret_cast<const unsigned char*>(text.data()),
       text.size(), out.data(), &length);
  return {reinterpret_cast<const char*>(out.data()), length};
}

}  // namespace

std::string new_nonce() {
  std::string out(kNonceBytes, '\0');
  RANKLAB_CHECK(::getrandom(out.data(), out.size(), 0) == static_cast<ssize_t>(out.size()), ErrorKind::kEnvironment,
                .where = "rendezvous", .what = "the system does not provide random bytes", .got = std::strerror(errno),
                .want = "getrandom(2)", .fix = "use Linux 3.17 or later");
  return out;
}

std::string new_token() {
  std::string out;
  for (const char byte : new_nonce()) out += strprintf("%02x", static_cast<unsigned>(static_cast<unsigned char>(byte)));
  return out;
}

bool same_secret(std::string_view a, std::string_view b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

void pack_hello(Packer& packer, const Hello& hello) {
  packer.number(hello.version)
      .number(hello.rank)
      .number(hello.world_size)
      .number(hello.attempt)
      .text(hello.run_id)
      .number(hello.pid)
      .text(hello.nonce)
      .text(hello.proof);
}

Hello unpack_hello(Unpacker& unpacker) {
  Hello hello;
  hello.version = unpacker.number();
  hello.rank = unpacker.number_between(0, INT32_MAX);
  hello.world_size = unpacker.number_between(1, INT32_MAX);
  hello.attempt = unpacker.number();
  hello.run_id = unpacker.text();
  hello.pid = unpacker.number();
  hello.nonce = unpacker.text();
  hello.proof = unpacker.text();
  return hello;
}

std::string member_proof(const std::string& token, const std::string& challenge, const Hello& hello) {
  Hello bare = hello;
  bare.proof.clear();
  Packer packer;
  packer.text("ranklab member").text(challenge);
  pack_hello(packer, bare);
  return sign(token, packer.bytes());
}

std::string answer_challenge(const std::string& token, const std::string& challenge, Hello& hello) {
  hello.pid = ::getpid();
  hello.nonce = new_nonce();
  hello.proof = member_proof(token, challenge, hello);
  Packer packer;
  pack_hello(packer, hello);
  return packer.bytes();
}

std::string coordinator_proof(const std::string& token, const std::string& challenge, const std::string& nonce) {
  return sign(token, Packer().text("ranklab coordinator").text(challenge).text(nonce).bytes());
}

std::string data_token(const DataTokenOf& of) {
  return sign(of.token, Packer()
                            .text("ranklab data connection")
                            .text(of.secret)
                            .text(of.run_id)
                            .number(of.attempt)
                            .number(of.listener)
                            .bytes());
}

uint64_t short_digest(std::string_view text) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> out{};
  EVP_Digest(text.data(), text.size(), out.data(), nullptr, EVP_sha256(), nullptr);
  uint64_t first = 0;
  std::memcpy(&first, out.data(), sizeof first);
  return first;
}

}  // namespace ranklab::cpu_sim
