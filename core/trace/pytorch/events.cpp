#include "core/trace/pytorch/events.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <limits>
#include <utility>

#include "core/base/json_integer.h"
#include "core/trace/chrome_json.h"
#include "core/trace/tracer.h"

namespace ranklab {
namespace {

using nlohmann::json;

// Times since 1970 and durations beyond this are invalid.
constexpr int64_t kLatest = 2'000'000'000'000'000'000;
constexpr int64_t kLongest = int64_t{1} << 52;

std::string text_of(const json& args, const char* key) {
  const auto found = args.find(key);
  if (found == args.end()) return "";
  return found->is_string() ? found->get<std::string>() : found->dump();
}

int64_t count_of(const json& args, const char* key) {
  const auto found = args.find(key);
  if (found == args.end() || !found->is_number_integer()) return 0;
  return std::clamp<int64_t>(json_integer<int64_t>(*found, key), 0, int64_t{1} << 44);
}

// Parses "[0, 1, 2]". Kineto abbreviates long lists with "..."; their members are unknown.
std::vector<int> members_of(const std::string& text) {
  std::vector<int> members;
  if (text.find("...") != std::string::npos) return members;
  const char* at = text.data();
  const char* const end = at + text.size();
  while (at != end) {
    int value = 0;
    const auto [next, error] = std::from_chars(at, end, value);
    if (error == std::errc()) members.push_back(value);
    at = error == std::errc() ? next : at + 1;
  }
  return members;
}

std::string plain(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0)
      out += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return out;
}

// Determines the verb from the call's name: "allreduce", "_allgather_base", "reduce_scatter_tensor_coalesced",
// "ncclDevKernel_SendRecv" ...
bool verb_of(std::string_view name, Verb& verb) {
  static constexpr std::array<std::pair<std::string_view, Verb>, 9> kWords = {{{"allreduce", Verb::kAllReduce},
                                                                               {"reducescatter", Verb::kReduceScatter},
                                                                               {"allgather", Verb::kAllGather},
                                                                               {"alltoall", Verb::kAllToAll},
                                                                               {"broadcast", Verb::kBroadcast},
                                                                               {"barrier", Verb::kBarrier},
                                                                               {"sendrecv", Verb::kAllToAll},
                                                                               {"send", Verb::kSend},
                                                                               {"recv", Verb::kRecv}}};
  const std::string text = plain(name);
  for (const auto& [word, known] : kWords) {
    if (text.find(word) == std::string::npos) continue;
    verb = known;
    return true;
  }
  return false;
}

DType dtype_of(const std::string& name) {
  static constexpr std::array<std::pair<std::string_view, DType>, 8> kNames = {{{"float", DType::kFloat32},
                                                                                {"double", DType::kFloat64},
                                                                                {"bfloat16", DType::kBFloat16},
                                                                                {"half", DType::kFloat16},
                                                                                {"long", DType::kInt64},
                                                                                {"int", DType::kInt32},
                                                                                {"byte", DType::kUInt8},
                                                                                {"bool", DType::kBool}}};
  const std::string text = plain(name);
  for (const auto& [word, dtype] : kNames) {
    if (text == word) return dtype;
  }
  return text.starts_with("float8") ? DType::kFloat8 : DType::kOther;
}

// Determines the axis from a group's description; kCount when it names none.
Axis axis_of(const std::string& description) {
  static constexpr std::array<std::pair<std::string_view, Axis>, 12> kWords = {{{"expert", Axis::kEp},
                                                                                {"tensor", Axis::kTp},
                                                                                {"pipeline", Axis::kPp},
                                                                                {"context", Axis::kCp},
                                                                                {"data", Axis::kDp},
                                                                                {"fsdp", Axis::kDp},
                                                                                {"default", Axis::kWorld},
                                                                                {"tp", Axis::kTp},
                                                                                {"pp", Axis::kPp},
                                                                                {"cp", Axis::kCp},
                                                                                {"ep", Axis::kEp},
                                                                                {"dp", Axis::kDp}}};
  const std::string text = plain(description);
  for (const auto& [word, axis] : kWords) {
    if (text.find(word) != std::string::npos) return axis;
  }
  return Axis::kCount;
}

// Assigns a separate axis to each group of a rank.
class Axes {
 public:
  // RETURNS: kCount when there are more groups than axes.
  Axis of(const std::string& group, const std::string& description) {
    const auto known = axes_.find(group);
    if (known != axes_.end()) return known->second;
    Axis axis = axis_of(description);
    for (size_t i = 0; (axis == Axis::kCount || used_[static_cast<size_t>(axis)]) && i < used_.size(); ++i)
      axis = used_[i] ? Axis::kCount : static_cast<Axis>(i);
    if (axis != Axis::kCount) used_[static_cast<size_t>(axis)] = true;
    return axes_[group] = axis;
  }
  int64_t next_sequence(const std::string& group) { return sequences_[group]++; }

 private:
  std::map<std::string, Axis> axes_;
  std::map<std::string, int64_t> sequences_;
  std::array<bool, static_cast<size_t>(Axis::kCount)> used_{};
};

int64_t ring_bytes(Verb verb, int64_t logical, int64_t n) {
  switch (verb) {
    case Verb::kAllReduce:
      return 2 * logical / n * (n - 1);
    case Verb::kReduceScatter:
    case Verb::kAllGather:
    case Verb::kAllToAll:
      return logical / n * (n - 1);
    case Verb::kBarrier:
    case Verb::kRecv:
      return 0;
    default:
      return logical;
  }
}

}  // namespace

void PytorchEvents::section(const std::string& key, const json& value) {
  if (key == "distributedInfo" && value.is_object()) {
    if (value.contains("rank")) rank_ = json_integer<int>(value["rank"], "rank");
    if (value.contains("world_size")) world_size_ = json_integer<int>(value["world_size"], "world_size");
  }
  if (key == "baseTimeNanoseconds") base_ns_ = json_integer<int64_t>(value, "baseTimeNanoseconds");
}

bool PytorchEvents::read_call(const std::string& name, const json& args, Call& call) {
  const std::string collective = text_of(args, "Collective name");
  const bool kernel = name.starts_with("nccl");
  if (collective.empty() && !kernel) return false;
  if (!verb_of(collective.empty() ? name : collective, call.verb)) return false;
  call.dtype = dtype_of(text_of(args, "dtype"));
  call.group = text_of(args, "Process Group Name");
  call.description = text_of(args, "Process Group Description");
  call.members = members_of(text_of(args, "Process Group Ranks"));
  call.elements_in = count_of(args, "In msg nelems");
  call.elements_out = count_of(args, "Out msg nelems");
  const char* const peer = call.verb == Verb::kSend ? "Dst Rank" : "Src Rank";
  if (call.verb == Verb::kSend || call.verb == Verb::kRecv) call.peer = static_cast<int>(count_of(args, peer));
  return true;
}

void PytorchEvents::event(const json& value) {
  if (!value.is_object() || value.value("ph", "") != "X" || !value.contains("ts") || !value.contains("name")) return;
  const std::string category = value.contains("cat") ? value["cat"].get<std::string>() : "";
  const bool gpu = category == "kernel" || category.starts_with("gpu_mem");
  const bool annotation = category == "user_annotation" || category == "gpu_user_annotation";
  if (!gpu && !annotation && category != "cpu_op") return;
  Slice slice;
  slice.name = value["name"].get<std::string>();
  slice.begin_ns = ns_of(value["ts"]);
  slice.end_ns = slice.begin_ns + (value.contains("dur") ? std::clamp<int64_t>(ns_of(value["dur"]), 0, kLongest) : 0);
  if (slice.begin_ns < -kLatest || slice.begin_ns > kLatest) return;
  slice.gpu = gpu;
  constexpr std::string_view kStep = "ProfilerStep#";
  if (annotation && slice.name.starts_with(kStep)) {
    Step step{0, slice.begin_ns, slice.end_ns, category != "user_annotation"};
    const char* const end = slice.name.data() + slice.name.size();
    if (std::from_chars(slice.name.data() + kStep.size(), end, step.number).ec == std::errc() && step.number >= 0)
      steps_.push_back(step);
    return;
  }
  const auto args = value.find("args");
  if (args != value.end() && args->is_object()) slice.call = read_call(slice.name, *args, slice.of_call);
  if (annotation && !slice.call) return;  // annotated ranges of user code are not work
  slices_.push_back(std::move(slice));
}

int64_t PytorchEvents::first_ns() const {
  int64_t first = std::numeric_limits<int64_t>::max();
  for (const Slice& slice : slices_) first = std::min(first, slice.begin_ns);
  for (const Step& step : steps_) first = std::min(first, step.begin_ns);
  return first;
}

int PytorchEvents::step_at(int64_t time_ns, bool gpu) const {
  int found = -1;
  for (const Step& step : steps_) {
    if (step.gpu != gpu && std::any_of(steps_.begin(), steps_.end(), [&](const Step& s) { return s.gpu == gpu; }))
      continue;
    if (step.begin_ns <= time_ns && time_ns < step.end_ns) found = step.number;
  }
  return found;
}

RankTrace PytorchEvents::trace(int64_t origin_ns) const {
  Tracer tracer(rank_, "", std::numeric_limits<size_t>::max());
  const bool has_gpu = std::any_of(slices_.begin(), slices_.end(), [](const Slice& slice) { return slice.gpu; });
  Axes axes;
  std::vector<const Slice*> order;
  for (const Slice& slice : slices_) {
    if (slice.gpu == has_gpu) order.push_back(&slice);
  }
  std::stable_sort(order.begin(), order.end(),
                   [](const Slice* a, const Slice* b) { return a->begin_ns < b->begin_ns; });
  for (const Step& step : steps_) {
    if (step.gpu) continue;
    Event event;
    event.kind = EventKind::kPhase;
    event.name = tracer.intern("step");
    event.step = step.number;
    event.wall_begin_ns = step.begin_ns - origin_ns;
    event.wall_end_ns = step.end_ns - origin_ns;
    tracer.record(event);
  }
  for (const Slice* slice : order) {
    Event event;
    event.kind = EventKind::kCompute;
    event.step = step_at(slice->begin_ns, slice->gpu);
    event.wall_begin_ns = slice->begin_ns - origin_ns;
    event.wall_end_ns = slice->end_ns - origin_ns;
    const Call& call = slice->of_call;
    const Axis axis = slice->call ? axes.of(call.group, call.description) : Axis::kCount;
    if (axis != Axis::kCount) {
      event.kind = EventKind::kCollective;
      event.axis = axis;
      event.verb = call.verb;
      event.dtype = call.dtype;
      event.sequence = axes.next_sequence(call.group);
      event.logical_bytes = std::max(call.elements_in, call.elements_out) * size_bytes(call.dtype);
      const auto n = static_cast<int64_t>(std::max<size_t>(call.members.size(), 1));
      event.algorithm_bytes = ring_bytes(call.verb, event.logical_bytes, n);
      const auto peer = std::find(call.members.begin(), call.members.end(), call.peer);
      if (call.peer >= 0 && peer != call.members.end()) event.peer = static_cast<int>(peer - call.members.begin());
      if (!call.members.empty()) tracer.set_group(axis, call.members);
    }
    event.name = tracer.intern(event.kind == EventKind::kCollective ? name(event.verb) : std::string_view(slice->name));
    tracer.record(event);
  }
  return tracer.take();
}

}  // namespace ranklab
