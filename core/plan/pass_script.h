// The measured cost of a pass of a stage (F, B, W or BW): its parts, and the calls and turns between them. It is then
// played in place of running another pass like it. Each part takes its time and bytes, and each call its place on its
// lane, so that the pass waits for earlier calls, and for another pass that takes turns with it
// (core/parallel/interleave.h), as if it had run. Thread rule: its rank's thread.
#pragma once
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "core/comm/call_watch.h"
#include "core/parallel/interleave.h"
#include "core/plan/cost_probe.h"

namespace ranklab {

struct PassScript {
  enum class Moment { kPost, kWait, kTurn, kEnd };
  struct Part {
    CostMemo cost;  // until the moment
    Moment moment = Moment::kEnd;
    size_t call = 0;  // kPost, kWait: index into `calls`
  };
  std::vector<Part> parts;
  std::vector<std::shared_ptr<RepeatableCall>> calls;
  TrafficCount traffic = {};
  RankTime time = {};  // compute and exposed communication of all parts and waits

  CategoryBytes kept() const;
};

// Measures everything that the rank does from construction to end(), except in the turns of another pass, and except
// messages between stages, which are also sent when the pass is played.
class ScriptRecorder final : public CallWatch, public TurnWatch {
 public:
  explicit ScriptRecorder(RankContext& ctx);
  ~ScriptRecorder() override;
  ScriptRecorder(const ScriptRecorder&) = delete;
  ScriptRecorder& operator=(const ScriptRecorder&) = delete;

  PassScript end();

  void posted(const Work& call, Axis axis, std::shared_ptr<RepeatableCall> repeatable) override;
  void waits(const Work& call) override;
  void waited(const Work& call) override;
  void suspended() override;
  void resumed() override;

 private:
  CostMemo measured();
  void finish_part(PassScript::Moment moment, size_t call = 0);

  RankContext& ctx_;
  PassScript script_;
  std::map<const Work*, size_t> posted_;
  std::optional<CostProbe> probe_;
  TurnWatch* outer_turns_;
  CallWatch* outer_calls_;
};

// Plays a script. What the rank really does between construction and play(), and between play() and end(), counts as a
// share of the first and of the last part.
class ScriptPlayer {
 public:
  // `script` must outlive the object. `traced`: the events of its calls are recorded.
  ScriptPlayer(RankContext& ctx, const PassScript& script, bool traced);

  void play();
  // RETURNS: the bytes that were added in all parts.
  CategoryBytes end();

 private:
  RankContext& ctx_;
  const PassScript& script_;
  bool traced_;
  CategoryBytes added_{};
  std::optional<CostProbe> probe_;
};

}  // namespace ranklab
