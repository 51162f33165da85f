#include "core/runtime/zero_counter.h"

#include "core/base/text.h"

namespace ranklab {

std::string ZeroCounters::text() const {
  const auto part = [](const char* what, int64_t count, const char* of, int64_t bytes) {
    return strprintf("%s %ld %s (%s)", what, static_cast<long>(count), of,
                     human_bytes(static_cast<double>(bytes)).c_str());
  };
  std::string text = part("reduced", reduced, "buckets", reduced_bytes);
  if (updated > 0) text += ", " + part("gathered", updated, "updated buckets", updated_bytes);
  if (gathered > 0)
    text +=
        ", " + part("gathered", gathered, "units", gathered_bytes) + strprintf(", freed %ld", static_cast<long>(freed));
  return text;
}

void ZeroCounter::add(const GradBucket& bucket) {
  const int64_t parameters = bucket.layout.elements * bucket.parameter_bytes();
  const bool sharded = bucket.shards > 1;
  sizes_[bucket.label] = {bucket.layout.bytes(), parameters, sharded};
  if (sharded) unit_bytes_[bucket.layout.unit] += parameters;
}

void ZeroCounter::note(ZeroState state, const std::string& label) {
  switch (state) {
    case ZeroState::kReduced:
      ++counters_.reduced;
      counters_.reduced_bytes += sizes_.at(label).gradients;
      return;
    case ZeroState::kUpdated:
      if (!sizes_.at(label).sharded) return;  // every rank updated the whole bucket
      ++counters_.updated;
      counters_.updated_bytes += sizes_.at(label).parameters;
      return;
    case ZeroState::kGathered:
      ++counters_.gathered;
      counters_.gathered_bytes += unit_bytes_.at(label);
      return;
    case ZeroState::kFreed:
      ++counters_.freed;
      return;
    case ZeroState::kPartial:
    case ZeroState::kGathering:
      return;
  }
}

}  // namespace ranklab
