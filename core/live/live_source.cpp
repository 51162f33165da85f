#include "core/live/live_source.h"

#include <utility>

namespace ranklab {
namespace {

class LocalSource final : public LiveSource {
 public:
  LocalSource(std::shared_ptr<LiveFeed> feed, std::shared_ptr<Stepper> stepper)
      : feed_(std::move(feed)), stepper_(std::move(stepper)), reader_(feed_) {}

  LiveStatus status() const override {
    if (feed_->ended()) return LiveStatus::kEnded;
    const bool held = stepper_ && stepper_->wait_paused(std::chrono::milliseconds(0));
    return held && stepper_->state().mode == StepperMode::kPaused ? LiveStatus::kPaused : LiveStatus::kFollowing;
  }
  std::string message() const override {
    if (!feed_->ended()) return {};
    const std::string error = feed_->error();
    return error.empty() ? std::string(kRunIsDone) : error;
  }
  int world_size() const override { return feed_->world_size(); }
  std::vector<RankTrace> take() override {
    std::vector<RankTrace> out;
    RankTrace batch;
    for (int rank = 0; rank < feed_->world_size(); ++rank)
      if (reader_.read(rank, batch)) out.push_back(std::move(batch));
    return out;
  }
  StepperControl* stepper() override { return stepper_.get(); }

 private:
  std::shared_ptr<LiveFeed> feed_;
  std::shared_ptr<Stepper> stepper_;
  LiveReader reader_;
};

}  // namespace

std::unique_ptr<LiveSource> attach_in_process(std::shared_ptr<LiveFeed> feed, std::shared_ptr<Stepper> stepper) {
  return std::make_unique<LocalSource>(std::move(feed), std::move(stepper));
}

}  // namespace ranklab
