#include "backends/cuda/torchrun_env.h"

#include <charconv>
#include <cstdlib>
#include <string_view>

#include "core/base/error.h"
#include "core/base/text.h"

namespace ranklab {
namespace {

class EnvReader {
 public:
  explicit EnvReader(const GetEnv& get_env) : get_env_(get_env) {}

  std::string text(const char* name) const {
    const char* value = get_env_(name);
    return value != nullptr ? value : "";
  }
  std::string required(const char* name) const {
    const std::string value = text(name);
    if (value.empty()) fail(name, "nothing", "a value, as torchrun sets it");
    return value;
  }
  int number(const char* name, int lowest, int highest) const {
    const std::string value = required(name);
    int out = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), out);
    if (error != std::errc() || end != value.data() + value.size() || out < lowest || out > highest) {
      fail(name, quote(value), "a whole number from " + std::to_string(lowest) + " to " + std::to_string(highest));
    }
    return out;
  }

 private:
  [[noreturn]] static void fail(const std::string& name, const std::string& got, const std::string& want) {
    throw Error(
        ErrorKind::kEnvironment,
        {.where = "cuda backend",
         .what = "bad environment variable " + name,
         .got = got,
         .want = want,
         .fix = "start with torchrun --no-python --nproc-per-node N, or unset RANK and WORLD_SIZE for one GPU"});
  }
  const GetEnv& get_env_;
};

}  // namespace

TorchrunEnv read_torchrun_env(const GetEnv& get_env) {
  const EnvReader reader(get_env);
  TorchrunEnv env;
  if (!reader.text("LOCAL_RANK").empty()) env.local_rank = reader.number("LOCAL_RANK", 0, 1 << 20);
  if (reader.text("RANK").empty() && reader.text("WORLD_SIZE").empty()) return env;
  env.world_size = reader.number("WORLD_SIZE", 1, 1 << 20);
  env.rank = reader.number("RANK", 0, env.world_size - 1);
  if (env.world_size == 1) return env;
  reader.required("LOCAL_RANK");
  env.master_addr = reader.required("MASTER_ADDR");
  env.master_port = reader.number("MASTER_PORT", 1, 65535);
  env.agent_store = reader.text("TORCHELASTIC_USE_AGENT_STORE") == "True";
  env.restart = reader.text("TORCHELASTIC_RESTART_COUNT");
  return env;
}

TorchrunEnv read_torchrun_env() {
  return read_torchrun_env([](const char* name) -> const char* { return std::getenv(name); });
}

}  // namespace ranklab
