#include "core/plan/pass_script.h"

#include <utility>

namespace ranklab {

CategoryBytes PassScript::kept() const {
  CategoryBytes sum{};
  for (const Part& part : parts) sum = plus(sum, part.cost.kept());
  return sum;
}

ScriptRecorder::ScriptRecorder(RankContext& ctx)
    : ctx_(ctx), outer_turns_(exchange_turn_watch(this)), outer_calls_(std::exchange(call_watch_of_thread, this)) {
  probe_.emplace(ctx_);
}

ScriptRecorder::~ScriptRecorder() {
  exchange_turn_watch(outer_turns_);
  call_watch_of_thread = outer_calls_;
}

CostMemo ScriptRecorder::measured() {
  CostMemo memo = probe_->end();
  probe_.reset();
  script_.traffic.add(memo.traffic);
  script_.time.compute_ns += memo.time.compute_ns;
  for (size_t axis = 0; axis < memo.time.exposed_ns.size(); ++axis)
    script_.time.exposed_ns[axis] += memo.time.exposed_ns[axis];
  return memo;
}

void ScriptRecorder::finish_part(PassScript::Moment moment, size_t call) {
  script_.parts.push_back({measured(), moment, call});
}

PassScript ScriptRecorder::end() {
  finish_part(PassScript::Moment::kEnd);
  return std::move(script_);
}

void ScriptRecorder::posted(const Work& call, Axis axis, std::shared_ptr<RepeatableCall> repeatable) {
  if (axis == Axis::kPp) return;
  finish_part(PassScript::Moment::kPost, script_.calls.size());
  posted_[&call] = script_.calls.size();
  script_.calls.push_back(std::move(repeatable));
  probe_.emplace(ctx_);
}

void ScriptRecorder::waits(const Work& call) {
  const auto known = posted_.find(&call);
  if (known == posted_.end()) return;  // a call of an earlier pass: a share of the part
  finish_part(PassScript::Moment::kWait, known->second);
  probe_.emplace(ctx_);
}

void ScriptRecorder::waited(const Work& call) {
  if (posted_.erase(&call) == 0) return;
  measured();
  probe_.emplace(ctx_);
}

void ScriptRecorder::suspended() {
  finish_part(PassScript::Moment::kTurn);
  call_watch_of_thread = outer_calls_;
}

void ScriptRecorder::resumed() {
  call_watch_of_thread = this;
  probe_.emplace(ctx_);
}

ScriptPlayer::ScriptPlayer(RankContext& ctx, const PassScript& script, bool traced)
    : ctx_(ctx), script_(script), traced_(traced) {
  probe_.emplace(ctx_);
}

void ScriptPlayer::play() {
  std::vector<WorkPtr> works(script_.calls.size());
  for (const PassScript::Part& part : script_.parts) {
    probe_->catch_up_time(part.cost);
    if (part.moment == PassScript::Moment::kEnd) return;
    added_ = plus(added_, probe_->catch_up_bytes(part.cost));
    if (part.moment == PassScript::Moment::kTurn) take_turns();
    if (part.moment == PassScript::Moment::kPost) works[part.call] = script_.calls[part.call]->repeat(traced_);
    if (part.moment == PassScript::Moment::kWait) works[part.call]->wait();
    probe_.emplace(ctx_);
  }
}

CategoryBytes ScriptPlayer::end() {
  added_ = plus(added_, probe_->catch_up_bytes(script_.parts.back().cost));
  probe_.reset();
  return added_;
}

}  // namespace ranklab
