#include "cli/world/run_token.h"

#include "cli/world/make_world.h"
#include "core/base/error.h"
#include "core/base/system.h"

namespace ranklab {

std::string checked_run_token(const std::string& token, const std::string& where) {
  constexpr size_t kLeast = 16;
  RANKLAB_CHECK(token.size() >= kLeast, ErrorKind::kInvalidArgument, .where = where,
                .what = token.empty() ? "there is no token" : "the token is too short to be a secret",
                .got = std::to_string(token.size()) + " characters", .want = std::to_string(kLeast) + " or more",
                .fix = "make one with: openssl rand -hex 32; give the same to every node");
  return token;
}

std::string run_token_of_environment() {
  const std::string token = environment_variable(kRunTokenVariable);
  return token.empty() ? token : checked_run_token(token, kRunTokenVariable);
}

}  // namespace ranklab
