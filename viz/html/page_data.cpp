#include "viz/html/page_data.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "core/base/text.h"
#include "viz/model/stage/words.h"
#include "viz/model/store/time_text.h"

namespace ranklab::viz {
namespace {

using nlohmann::json;

// A browser cannot draw more in a frame, and a larger page would be too large to mail. The innermost modules and the
// shortest calls are left out.
constexpr size_t kMostModules = 60'000, kMostFlows = 20'000;

constexpr std::array<std::string_view, 6> kTextures = {"rising",     "falling", "vertical",
                                                       "horizontal", "crossed", "plain"};

double rounded(double value) { return std::round(value * 1e4) / 1e4; }
json box_json(const StageBox& box) { return {rounded(box.x0), rounded(box.y0), rounded(box.x1), rounded(box.y1)}; }

class PageData {
 public:
  PageData(const TraceStore& store, const StageScript& script) : store_(store), script_(script) {}

  json data(int64_t open_ns) {
    json out;
    out["title"] = script_.title.empty() ? store_.source() : script_.title;
    out["length"] = script_.window.range.length_ns();
    out["unit"] = store_.unit_ns();
    out["linger"] = std::max<int64_t>(script_.linger_ns(), 1);
    out["open"] = std::clamp<int64_t>(since(open_ns), 0, script_.window.range.length_ns());
    out["tick"] = axis_step_ns(script_.window.range.length_ns(), 8);
    out["texts"] = script_.texts;
    out["memoryTop"] = script_.memory_top_bytes;
    out["memoryScale"] = memory_scale_text(script_);
    rooms(out);
    ways(out);
    flows(out);
    shards(out);
    narration(out);
    vocabulary(out);
    out["about"] = about();
    return out;
  }

 private:
  int64_t since(int64_t time_ns) const { return time_ns - script_.window.range.begin_ns; }
  void interval(std::vector<int64_t>& flat, TimeRange range, std::initializer_list<int64_t> more) const {
    flat.push_back(since(range.begin_ns));
    flat.push_back(range.length_ns());
    flat.insert(flat.end(), more);
  }

  std::string about() const {
    std::string words = script_.window.step >= 0 ? "step " + std::to_string(script_.window.step) : "";
    if (!store_.warning().empty()) words += "; " + store_.warning();
    if (script_.folded_ranks > 0)
      words += "; " + std::to_string(script_.folded_ranks) + " more ranks are replicas of these and left out";
    if (left_out_ > 0) words += "; " + std::to_string(left_out_) + " short calls are left out";
    return words;
  }

  // The first depth at which modules are left out.
  size_t module_depths() const {
    size_t deepest = 0, sum = 0;
    for (const StageRoom& room : script_.rooms) deepest = std::max(deepest, room.modules.size());
    for (size_t depth = 0; depth < deepest; ++depth) {
      for (const StageRoom& room : script_.rooms) sum += depth < room.modules.size() ? room.modules[depth].size() : 0;
      if (sum > kMostModules) return depth;
    }
    return deepest;
  }

  void rooms(json& out) {
    const size_t depths = module_depths();
    json rooms = json::array();
    for (const StageRoom& room : script_.rooms) {
      std::vector<int64_t> actions, waits, held;
      for (const StageAction& one : room.actions) {
        interval(actions, one.range, {one.text, static_cast<int64_t>(one.paint), one.microbatch});
        events_.insert(since(one.range.begin_ns));
        paints_.insert(one.paint);
      }
      json modules = json::array();
      for (size_t depth = 0; depth < std::min(depths, room.modules.size()); ++depth) {
        std::vector<int64_t> flat;
        for (const StageModule& one : room.modules[depth]) {
          interval(flat, one.range, {one.text, one.format, one.layer});
          events_.insert(since(one.range.begin_ns));
        }
        modules.push_back(flat);
      }
      for (const StageWait& one : room.waits) {
        interval(waits, one.range, {one.text, static_cast<int64_t>(one.cause), one.room});
        causes_.insert(one.cause);
      }
      for (const StageHeld& one : room.held) interval(held, one.range, {one.microbatch});
      rooms.push_back({{"name", room.name},
                       {"coordinates", room.coordinates},
                       {"box", box_json(room.box)},
                       {"actions", actions},
                       {"modules", modules},
                       {"waits", waits},
                       {"held", held},
                       {"memory", memory(room)},
                       {"limit", room.memory.limit_bytes},
                       {"unrecorded", room.unrecorded.empty()
                                          ? json{0, 0}
                                          : json{since(room.unrecorded.begin_ns), since(room.unrecorded.end_ns)}}});
    }
    out["rooms"] = std::move(rooms);
  }

  std::vector<double> memory(const StageRoom& room) {
    std::vector<double> flat;
    for (const MemorySample& sample : room.memory.samples) {
      flat.push_back(static_cast<double>(since(sample.time_ns)));
      for (size_t c = 0; c < kMemoryCategories; ++c) {
        flat.push_back(std::isfinite(sample.bytes[c]) ? std::round(sample.bytes[c]) : 0);
        if (sample.bytes[c] > 0) categories_.insert(c);
      }
    }
    return flat;
  }

  void ways(json& out) {
    json nodes = json::array(), paths = json::array(), pairs = json::array();
    for (const StageNode& node : script_.nodes) nodes.push_back({{"number", node.number}, {"box", box_json(node.box)}});
    for (const StagePath& path : script_.paths)
      paths.push_back({path.from, path.to, path.between_nodes ? 1 : 0, rounded(path.x0), rounded(path.y0),
                       rounded(path.control_x), rounded(path.control_y), rounded(path.x1), rounded(path.y1)});
    for (const std::vector<StagePair>& set : script_.pair_sets) {
      json one = json::array();
      for (const StagePair& pair : set) one.push_back({pair.path, std::lround(100 * pair.width)});
      pairs.push_back(std::move(one));
    }
    out["nodes"] = std::move(nodes);
    out["paths"] = std::move(paths);
    out["pairs"] = std::move(pairs);
  }

  int64_t shortest_kept() const {
    if (script_.flows.size() <= kMostFlows) return -1;
    std::vector<int64_t> lengths;
    for (const StageFlow& flow : script_.flows) lengths.push_back(flow.range.length_ns());
    std::nth_element(lengths.begin(), lengths.begin() + kMostFlows, lengths.end(), std::greater<>());
    return lengths[kMostFlows];
  }

  void flows(json& out) {
    const int64_t too_short = shortest_kept();
    std::vector<int64_t> flat, until;
    int64_t latest = 0;
    for (const StageFlow& flow : script_.flows) {
      if (flow.range.length_ns() <= too_short) {
        ++left_out_;
        continue;
      }
      interval(flat, flow.range,
               {flow.pairs, flow.kind, static_cast<int64_t>(flow.verb), static_cast<int64_t>(flow.dtype),
                flow.microbatch, flow.gradients ? 1 : 0, flow.bytes, std::lround(100 * flow.width)});
      latest = std::max(latest, since(flow.range.end_ns));
      until.push_back(latest);
      dtypes_.insert(flow.dtype);
      events_.insert(since(flow.range.begin_ns));
    }
    out["flows"] = flat;
    out["flowsUntil"] = until;
  }

  // The history of a cell as begins and states: 0: only the shard, 1: being gathered, 2: gathered.
  std::vector<int64_t> history(const ZeroBucketRow& row, size_t rank) const {
    std::vector<int64_t> flat;
    for (const auto& [time, state] : row.cells[rank].history) {
      const HeldParameters held = row.parameters_at(rank, time, script_.zero.stage);
      const int64_t number = held == HeldParameters::kGathered ? 2 : held == HeldParameters::kGathering ? 1 : 0;
      flat.push_back(since(time));
      flat.push_back(number);
    }
    return flat;
  }

  void shards(json& out) {
    json rows = json::array();
    for (const ZeroBucketRow& row : script_.zero.rows) {
      if (row.shards < 2 || !script_.has_shards()) continue;
      json cells = json::array();
      for (const StageRoom& room : script_.rooms) {
        const ZeroCell& cell = row.cells[room.rank_index];
        if (cell.present)
          cells.push_back({{"shard", cell.shard}, {"history", history(row, room.rank_index)}});
        else
          cells.push_back(nullptr);
      }
      rows.push_back({{"label", bucket_letter(row.label)}, {"shards", row.shards}, {"cells", std::move(cells)}});
    }
    out["shards"] = std::move(rows);
  }

  std::set<int64_t> times_of(const std::vector<StageMark>& marks) const {
    std::set<int64_t> times;
    for (const StageMark& mark : marks) times.insert(since(mark.time_ns));
    return times;
  }

  void narration(json& out) {
    std::vector<int64_t> times;
    json lines = json::array();
    for (const StageLine& line : script_.lines) {
      times.push_back(since(line.time_ns));
      lines.push_back(line.words);
    }
    out["lineTimes"] = times;
    out["lines"] = std::move(lines);
    out["events"] = events_;
    out["microbatches"] = times_of(script_.microbatches);
    out["layers"] = times_of(script_.layers);
  }

  // Names and colours by number, and which of them occur in the script.
  void vocabulary(json& out) {
    for (size_t i = 0; i < kPaints; ++i) {
      const auto paint = static_cast<Paint>(i);
      out["paints"].push_back({{"name", std::string(name(paint))},
                               {"color", hex(colour(paint))},
                               {"text", hex(text_colour(paint))},
                               {"used", paints_.contains(paint)}});
    }
    for (size_t i = 0; i < kBubbleCauses; ++i) {
      const auto cause = static_cast<BubbleCause>(i);
      out["causes"].push_back({{"name", std::string(name(cause))},
                               {"color", hex(colour(cause))},
                               {"texture", std::string(kTextures[static_cast<size_t>(texture(cause))])},
                               {"done", cause == BubbleCause::kDrain},
                               {"used", causes_.contains(cause)}});
    }
    for (size_t i = 0; i < kMemoryCategories; ++i) {
      const auto category = static_cast<MemoryCategory>(i);
      out["memory"].push_back(
          {{"name", std::string(name(category))}, {"color", hex(colour(category))}, {"used", categories_.contains(i)}});
    }
    for (size_t i = 0; i <= static_cast<size_t>(DType::kOther); ++i) {
      const auto dtype = static_cast<DType>(i);
      out["dtypes"].push_back({{"name", std::string(name(dtype))},
                               {"color", hex(precision_colour(float_bits(dtype)))},
                               {"used", dtypes_.contains(dtype)}});
    }
    for (size_t i = 0; i < static_cast<size_t>(Verb::kCount); ++i)
      out["verbs"].push_back(std::string(name(static_cast<Verb>(i))));
    out["kinds"] = json::array();
    for (const StageFlowKind& kind : script_.kinds)
      out["kinds"].push_back({{"color", hex(kind.colour)}, {"words", kind.words}});
    out["formats"] = json::object();
    for (const std::string& format : script_.formats)
      out["formats"][format] = hex(precision_colour(bits_of_format(format)));
    out["colors"] = {{"parameters", hex(colour(MemoryCategory::kParameters))},
                     {"gathered", hex(colour(MemoryCategory::kGathered))},
                     {"activations", hex(colour(MemoryCategory::kActivations))},
                     {"gradients", hex(colour(MemoryCategory::kGradients))}};
  }

  const TraceStore& store_;
  const StageScript& script_;
  std::set<int64_t> events_;
  std::set<Paint> paints_;
  std::set<BubbleCause> causes_;
  std::set<size_t> categories_;
  std::set<DType> dtypes_;
  size_t left_out_ = 0;
};

}  // namespace

std::string page_data(const TraceStore& store, const StageScript& script, int64_t open_ns) {
  return PageData(store, script).data(open_ns).dump(-1, ' ', false, json::error_handler_t::replace);
}

}  // namespace ranklab::viz
