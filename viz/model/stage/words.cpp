#include "viz/model/stage/words.h"

#include <algorithm>
#include <array>
#include <cstdio>

#include "core/base/text.h"
#include "viz/model/store/time_text.h"

namespace ranklab::viz {

std::string wait_words(const TraceStore& store, size_t rank_index, const IdleInterval& idle) {
  const Event* call = idle.event == kNoEvent ? nullptr : &store.event({rank_index, idle.event});
  const std::string verb = call == nullptr ? "" : std::string(name(call->verb));
  const std::string who = idle.waits_for_rank < 0 ? "" : "r" + std::to_string(idle.waits_for_rank);
  switch (idle.cause) {
    case BubbleCause::kWarmUp:
    case BubbleCause::kDependency:
      if (who.empty())
        return idle.cause == BubbleCause::kWarmUp ? "nothing has reached it yet" : "its input is not there";
      return idle.waits_for.empty() ? who + " has not sent yet" : idle.waits_for + " is still on " + who;
    case BubbleCause::kStraggler:
      if (who.empty()) return "a member of " + verb + " is late";
      return who + " comes last to " + verb + (idle.waits_for.empty() ? "" : " (it ran " + idle.waits_for + ")");
    case BubbleCause::kExposed:
      if (call == nullptr) return "bytes are on their way";
      return verb + " " + std::string(name(call->axis)) + ", " + human_bytes(static_cast<double>(call->logical_bytes)) +
             " on the way";
    case BubbleCause::kDrain:
      return who.empty() ? "its work of the step is done" : "its work is done, " + who + " is not";
    case BubbleCause::kHost:
    case BubbleCause::kCount:
      break;
  }
  return "no reason was recorded";
}

std::string flow_words(Axis axis, Purpose purpose) {
  constexpr std::array<std::string_view, static_cast<size_t>(Purpose::kCount)> kMeanings = {
      "",
      "how many tokens go where",
      "tokens go to their experts",
      "results come back",
      "gradients of the tokens come back",
      "gradients of the results go out",
      "keys and values",
      "gradients of keys and values",
      "heads are exchanged for positions"};
  constexpr std::array<std::string_view, static_cast<size_t>(Axis::kCount)> kAxes = {"all ranks",
                                                                                     "parts of a layer",
                                                                                     "parts of a sequence",
                                                                                     "replicas",
                                                                                     "stages of the pipeline",
                                                                                     "experts",
                                                                                     "parts of experts",
                                                                                     "replicas of experts",
                                                                                     "replicas",
                                                                                     "shards",
                                                                                     "groups of shards",
                                                                                     "shards of experts",
                                                                                     "groups of shards",
                                                                                     "ranks that share keys",
                                                                                     "heads of a sequence",
                                                                                     "ring of a sequence"};
  const std::string_view purpose_words = kMeanings[static_cast<size_t>(purpose)];
  std::string words(name(axis));
  if (purpose == Purpose::kOther) return words + ": " + std::string(kAxes[static_cast<size_t>(axis)]);
  return words + " " + std::string(name(purpose)) + ": " + std::string(purpose_words);
}

std::string bucket_letter(const std::string& bucket) {
  constexpr std::string_view kLayers = "layers.";
  if (!bucket.starts_with(kLayers)) return bucket.substr(0, 1);
  const size_t space = bucket.find(' ');
  const std::string layer = bucket.substr(kLayers.size(), space - kLayers.size());
  return space == std::string::npos ? layer : layer + bucket.substr(space + 1, 1);
}

int bits_of_format(const std::string& format) {
  int exponent = 0, mantissa = 0;
  return std::sscanf(format.c_str(), "E%dM%d", &exponent, &mantissa) == 2 ? 1 + exponent + mantissa : 16;
}

std::string rooms_words(const StageScript& script, std::span<const int> rooms) {
  constexpr size_t kNamed = 4;
  const auto word = [&](size_t i) { return script.rooms[static_cast<size_t>(rooms[i])].name; };
  if (rooms.empty()) return "";
  std::vector<std::string> parts;
  for (size_t i = 0; i < rooms.size();) {
    size_t last = i;
    while (last + 1 < rooms.size() && rooms[last + 1] == rooms[last] + 1) ++last;
    if (last > i + 1) {
      parts.push_back(word(i) + "-" + word(last));
    } else {
      for (size_t k = i; k <= last; ++k) parts.push_back(word(k));
    }
    i = last + 1;
  }
  if (parts.size() > kNamed) return word(0) + " and " + std::to_string(rooms.size() - 1) + " others";
  if (parts.size() == 1) return parts[0];
  const std::string last = parts.back();
  parts.pop_back();
  return join(parts, ", ") + " and " + last;
}

std::string memory_scale_text(const StageScript& script) {
  const std::string top = human_bytes(script.memory_top_bytes);
  if (script.memory_limit_bytes <= 0) return top;
  if (script.memory_top_bytes >= script.memory_limit_bytes) return top + ", the device's limit";
  return top + strprintf(", %.2g %% of the device's ", 100 * script.memory_top_bytes / script.memory_limit_bytes) +
         human_bytes(script.memory_limit_bytes);
}

std::string stage_text(const TraceStore& store, const StageScript& script) {
  if (script.empty()) return "nothing to show: the trace has no events with a duration\n";
  std::string out = script.window.step >= 0 ? "step " + std::to_string(script.window.step) + "\n" : "";
  for (const StageLine& line : script.lines)
    out += strprintf("%12s  ", format_time(store, line.time_ns - script.window.range.begin_ns).c_str()) +
           without_controls(line.words) + "\n";
  return out;
}

}  // namespace ranklab::viz
