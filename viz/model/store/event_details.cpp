#include "viz/model/store/event_details.h"

#include <algorithm>
#include <optional>
#include <span>

#include "core/base/kernel_bound.h"
#include "core/base/text.h"
#include "core/trace/chrome_event.h"
#include "core/trace/routing_event.h"
#include "viz/model/store/selection.h"
#include "viz/model/store/time_text.h"

namespace ranklab::viz {
namespace {

const char* kMeasured = "measured";
const char* kModel = "model";

class Details {
 public:
  Details(const TraceStore& store, EventRef ref) : store_(store), ref_(ref), event_(store.event(ref)) {}

  std::vector<Detail> list() {
    const RankTrace& trace = store_.trace(ref_.rank_index);
    add("event", store_.text(ref_));
    const Paint paint = paint_of(event_, store_.name(ref_));
    if (store_.text(ref_) != store_.name(ref_) && letters(paint).empty()) add("name", std::string(store_.name(ref_)));
    add("kind", letters(paint).empty() ? std::string(category(event_.kind)) : std::string(name(paint)));
    add("rank", std::to_string(trace.global_rank) + (trace.label.empty() ? "" : " (" + trace.label + ")"));
    number("step", event_.step);
    number("microbatch", event_.microbatch);
    number("stage", event_.stage);
    if (event_.kind == EventKind::kCollective) call(trace);
    times();
    if (event_.kind == EventKind::kCollective) bytes();
    if (event_.kind == EventKind::kInstant) routing();
    if (event_.kind == EventKind::kModule || event_.kind == EventKind::kKernel) work(event_.value);
    if (event_.kind == EventKind::kAttention && event_.value > 0)
      add("pairs of query and key", strprintf("%.0f", event_.value), kMeasured);
    if (event_.kind == EventKind::kCompute) work(flops_inside());
    if (event_.kind == EventKind::kCounter) add("value", strprintf("%.10g", event_.value), kMeasured);
    add("select", selection_text(store_, ref_));
    return std::move(list_);
  }

 private:
  void add(std::string key, std::string value, const char* source = "") {
    list_.push_back({std::move(key), std::move(value), source});
  }
  void number(const char* key, int64_t value) {
    if (value >= 0) add(key, std::to_string(value));
  }
  void time(const char* key, int64_t time_ns, const char* source) {
    if (time_ns != kNoTime) add(key, format_time(store_, time_ns), source);
  }
  void size(const char* key, int64_t bytes, const char* source) {
    if (bytes == 0) return;
    add(key, human_bytes(static_cast<double>(bytes)) + (bytes >= 1024 ? " (" + std::to_string(bytes) + " B)" : ""),
        source);
  }

  void call(const RankTrace& trace) {
    if (event_.purpose != Purpose::kOther) add("for", std::string(name(event_.purpose)));
    add("axis", std::string(name(event_.axis)));
    const std::vector<int>* group = group_of(trace, event_.axis);
    if (group != nullptr) add("group", "ranks " + join(std::span<const int>(*group), ", "));
    number("sequence", event_.sequence);
    add("dtype", std::string(name(event_.dtype)));
    if (event_.types.known()) add("types", event_.types.text());
    if (event_.peer < 0) return;
    const bool known = group != nullptr && static_cast<size_t>(event_.peer) < group->size();
    const char* role = event_.verb == Verb::kSend ? "to" : event_.verb == Verb::kRecv ? "from" : "root";
    add(role, known ? "rank " + std::to_string((*group)[static_cast<size_t>(event_.peer)])
                    : "group rank " + std::to_string(event_.peer));
    if (event_.tag != 0) add("tag", std::to_string(event_.tag));
  }

  void times() {
    const bool slice = is_slice(event_);
    if (event_.virtual_begin_ns != 0 || event_.virtual_end_ns != 0 || store_.clock() == TraceClock::kVirtual) {
      time(slice ? "begin" : "at", event_.virtual_begin_ns, kModel);
      if (slice) time("duration", event_.virtual_end_ns - event_.virtual_begin_ns, kModel);
      time("posted", event_.virtual_posted_ns, kModel);
      time("matched", event_.virtual_matched_ns, kModel);
      time("first byte", event_.virtual_first_byte_ns, kModel);
      if (event_.virtual_exposed_ns > 0) time("exposed", event_.virtual_exposed_ns, kModel);
      if (event_.virtual_peer_wait_ns > 0) time("peer wait", event_.virtual_peer_wait_ns, kModel);
    }
    if (event_.wall_begin_ns == 0 && event_.wall_end_ns == 0) return;
    add(slice ? "wall begin" : "wall at", human_ns(static_cast<double>(event_.wall_begin_ns)), kMeasured);
    if (slice)
      add("wall duration", human_ns(static_cast<double>(event_.wall_end_ns - event_.wall_begin_ns)), kMeasured);
    if (event_.wall_matched_ns != kNoTime)
      add("wall matched", human_ns(static_cast<double>(event_.wall_matched_ns)), kMeasured);
  }

  // Details of mixture-of-experts events; for other instants, their numbers.
  void routing() {
    const std::string_view what = store_.name(ref_);
    const bool load = what == kRoutingEvent || what == kExpertLoadEvent;
    if (load || what == kExpertBiasEvent) add("layer", std::to_string(event_.tag));
    numbers(load ? "tokens of experts" : what == kExpertBiasEvent ? "bias of experts" : "numbers", kMeasured);
    if (load) add("dropped", strprintf("%.0f", event_.value), kMeasured);
  }

  void numbers(const char* key, const char* source) {
    constexpr size_t kShown = 16;
    const std::span<const double> all = store_.array(ref_.rank_index, event_);
    if (all.empty()) return;
    std::string text;
    for (size_t i = 0; i < std::min(all.size(), kShown); ++i) text += (i > 0 ? " " : "") + strprintf("%.10g", all[i]);
    if (all.size() > kShown) text += " ... (" + std::to_string(all.size()) + ")";
    add(key, text, source);
  }

  // The FLOPs of an action's modules, if these were recorded: the next depth of its row contains the outermost ones.
  double flops_inside() const {
    const std::optional<EventPlace> place = store_.place_of(ref_);
    if (!place) return 0;
    const Row& row = store_.rank(ref_.rank_index).rows[place->row];
    if (place->depth + 1 >= row.tracks.size()) return 0;
    const Track& inner = row.tracks[place->depth + 1];
    double flops = 0;
    for (size_t i = inner.first_ending_after(store_.begin_ns(ref_));
         i < inner.size() && inner.end_ns[i] <= store_.end_ns(ref_); ++i) {
      const Event& event = store_.event({ref_.rank_index, inner.event[i]});
      if (event.kind == EventKind::kModule || event.kind == EventKind::kKernel) flops += event.value;
    }
    return flops;
  }

  // The work of an action, a module or a kernel.
  void work(double flops) {
    const int64_t ns = event_.virtual_end_ns - event_.virtual_begin_ns;
    if (flops > 0) {
      add("FLOPs", human_count(flops), kModel);
      if (ns > 0) add("rate", strprintf("%.3g TFLOP/s", flops / static_cast<double>(ns) * 1e-3), kModel);
    }
    if (event_.kind != EventKind::kKernel) return;
    size("reads and writes", event_.logical_bytes, kModel);
    add("dtype", std::string(name(event_.dtype)));
    if (event_.tag >= 0 && static_cast<size_t>(event_.tag) < kKernelBoundNames.size())
      add("bound by", std::string(kKernelBoundNames[static_cast<size_t>(event_.tag)]), kModel);
  }

  void bytes() {
    numbers(event_.verb == Verb::kAllToAll ? "bytes to members" : "numbers", "");
    size("logical bytes", event_.logical_bytes, "");
    size("algorithm bytes", event_.algorithm_bytes, kModel);
    size("wire bytes", event_.wire_bytes, kMeasured);
  }

  const TraceStore& store_;
  EventRef ref_;
  const Event& event_;
  std::vector<Detail> list_;
};

}  // namespace

std::vector<Detail> event_details(const TraceStore& store, EventRef ref) { return Details(store, ref).list(); }

}  // namespace ranklab::viz
