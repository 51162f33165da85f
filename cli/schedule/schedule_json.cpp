#include "cli/schedule/schedule_json.h"

#include <nlohmann/json.hpp>

namespace ranklab {
namespace {

using Json = nlohmann::ordered_json;

Json actions_json(const Schedule& schedule) {
  Json ranks = Json::array();
  for (const auto& actions : schedule.ranks) {
    Json row = Json::array();
    for (const Action& action : actions) row.push_back(to_text(action));
    ranks.push_back(std::move(row));
  }
  return ranks;
}

Json idle_json(const std::vector<Idle>& idle) {
  Json sums = {{"warm_up", 0.0}, {"dependency", 0.0}, {"message", 0.0}, {"drain", 0.0}};
  for (const Idle& one : idle) {
    const char* key = one.cause == IdleCause::kWarmUp ? "warm_up" : name(one.cause);
    sums[key] = sums[key].get<double>() + one.end - one.begin;
  }
  return sums;
}

void add_shape(Json& out, const Schedule& s) {
  out["schedule"] = s.name;
  out["num_ranks"] = s.num_ranks();
  out["num_microbatches"] = s.num_microbatches;
  out["num_stages"] = s.num_stages();
  out["rank_of_stage"] = s.rank_of_stage;
}

void add_memory(Json& out, const ScheduleProof& proof, int64_t message_bytes) {
  for (const char* key : {"peak_activations", "peak_memory", "messages_sent", "p2p_bytes"}) out[key] = Json::array();
  for (const StageMemory& memory : proof.memory) {
    out["peak_activations"].push_back(memory.peak_activations);
    out["peak_memory"].push_back(memory.peak_memory);
    out["messages_sent"].push_back(memory.messages_sent);
    out["p2p_bytes"].push_back(memory.messages_sent * message_bytes);
  }
}

}  // namespace

Json schedule_list_json() {
  Json list = Json::array();
  for (const ScheduleKind& kind : schedule_kinds())
    list.push_back({{"name", kind.name},
                    {"about", kind.about},
                    {"source", kind.source},
                    {"stages_per_rank", kind.chunks == 0 ? Json("--vpp") : Json(kind.chunks)}});
  return {{"schedules", list}};
}

Json schedule_json(const LoadedSchedule& loaded, const ScheduleOptions& options, const PipelineTimeline& line) {
  Json out;
  add_shape(out, loaded.schedule);
  const ScheduleCosts& c = loaded.costs;
  out["costs"] = {{"f", c.f},
                  {"b", c.b},
                  {"w", c.w},
                  {"c", c.c},
                  {"pair_factor", c.pair_factor},
                  {"weight_grad_memory", c.weight_grad_memory}};
  if (options.of_trace) out["costs"]["trace"] = options.trace;
  if (options.model.gives_costs())
    out["costs"].update(
        {{"preset", options.model.preset}, {"hardware", options.model.hardware}, {"dtype", options.model.dtype()}});
  if (loaded.known) out["costs"]["unit"] = "us";
  out["makespan"] = line.makespan;
  out["end"] = line.end;
  out["ideal"] = line.ideal;
  out["bubble_of_total"] = line.bubble_of_total();
  out["bubble_of_ideal"] = line.bubble_of_ideal();
  add_memory(out, loaded.proof, message_bytes(options.model));
  out["idle"] = Json::array();
  for (const auto& idle : line.idle) out["idle"].push_back(idle_json(idle));
  out["actions"] = actions_json(loaded.schedule);
  return out;
}

Json schedule_timeline_json(const LoadedSchedule& loaded, const ScheduleOptions& options,
                            const PipelineTimeline& line) {
  Json out = schedule_json(loaded, options, line);
  out["timeline"] = Json::array();
  for (const auto& rank : line.ranks) {
    Json row = Json::array();
    for (const TimedAction& timed : rank)
      row.push_back({{"action", to_text(timed.action)},
                     {"begin", timed.begin},
                     {"end", timed.end},
                     {"slack", timed.slack},
                     {"critical", timed.critical}});
    out["timeline"].push_back(std::move(row));
  }
  return out;
}

Json schedule_proof_json(const LoadedSchedule& loaded, const ScheduleOptions& options) {
  Json out;
  add_shape(out, loaded.schedule);
  if (loaded.file) out["dialect"] = name(loaded.file->dialect);
  out["problems"] = loaded.problems();
  out["messages"] = loaded.proof.messages;
  out["blocking_safe"] = loaded.proof.blocking_safe;
  out["blocking_cycle"] = loaded.proof.blocking_cycle;
  add_memory(out, loaded.proof, message_bytes(options.model));
  return out;
}

}  // namespace ranklab
