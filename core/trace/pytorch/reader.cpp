#include "core/trace/pytorch/reader.h"

#include <algorithm>
#include <limits>
#include <set>

#include "core/base/error.h"
#include "core/trace/chrome_json.h"
#include "core/trace/find_trace.h"
#include "core/trace/pytorch/events.h"

namespace ranklab {
namespace {

// In ns since 1970. The sum of two such times, and their difference to a third, fit in 64 bits.
constexpr int64_t kLatestBase = 2'000'000'000'000'000'000;

PytorchEvents read_one(const std::string& path, std::string& broken) {
  PytorchEvents events;
  try {
    visit_chrome_json(path, {[&](const std::string& key, const nlohmann::json& value) { events.section(key, value); },
                             [&](const nlohmann::json& event, size_t /*number*/) { events.event(event); }});
  } catch (const Error& error) {
    if (events.empty()) throw;
    broken = "broken: " + error.text().what + "; got " + error.text().got;
  }
  RANKLAB_CHECK(
      !events.empty(), ErrorKind::kBadFile, .where = "trace file " + path,
      .what = "neither a trace of ranklab nor one of PyTorch's profiler", .got = "no event that is known",
      .want = std::string("a ") + kTraceFileName + " of ranklab train, or torch.profiler's export_chrome_trace()",
      .fix = "check the path");
  return events;
}

}  // namespace

TracePrefix read_pytorch_traces(std::span<const std::string> paths) {
  TracePrefix out;
  out.file.clock = TraceClock::kWall;
  out.file.schema_version = 1;
  std::vector<PytorchEvents> files;
  std::set<int> ranks;
  int64_t origin = std::numeric_limits<int64_t>::max();
  const auto base = [](const PytorchEvents& file) {
    return file.base_ns() >= 0 && file.base_ns() < kLatestBase ? file.base_ns() : 0;
  };
  for (const std::string& path : paths) {
    files.push_back(read_one(path, out.broken));
    const PytorchEvents& file = files.back();
    RANKLAB_CHECK(ranks.insert(file.rank()).second, ErrorKind::kBadFile, .where = "trace file " + path,
                  .what = "two files of one rank", .got = "rank " + std::to_string(file.rank()) + " again",
                  .want = "distributedInfo with a rank of its own in each file", .fix = "pass one file a rank");
    origin = std::min(origin, base(file) + file.first_ns());
    out.file.world_size = std::max({out.file.world_size, file.world_size(), static_cast<int>(files.size())});
  }
  for (const PytorchEvents& file : files) out.file.ranks.push_back(file.trace(origin - base(file)));
  return out;
}

}  // namespace ranklab
