// In a test program that names the client of the fork server as the program: its server, started before the first test.
#include <gtest/gtest.h>

#include <optional>

#include "tests/fork_server/fork_server.h"

namespace ranklab {
namespace {

class ServesProgram : public testing::Environment {
 public:
  void SetUp() override { server_.emplace(RANKLAB_BINARY, RANKLAB_TRAINING_LIBRARY); }
  void TearDown() override { server_.reset(); }

 private:
  std::optional<fork_server::ForkServer> server_;
};

// GoogleTest owns it.
[[maybe_unused]] const testing::Environment* const kServesProgram =
    testing::AddGlobalTestEnvironment(new ServesProgram);

}  // namespace
}  // namespace ranklab
