#include "core/runtime/provide.h"

#include "core/base/error.h"

namespace ranklab {
namespace {

class FunctionModel : public ModelProvider {
 public:
  explicit FunctionModel(MakeModel make) : make_(std::move(make)) {}
  std::unique_ptr<CausalLm> build_model(RankContext& ctx, const RunPlan& plan) const override {
    return make_(ctx, plan);
  }

 private:
  MakeModel make_;
};

class FunctionBatches : public RankData {
 public:
  FunctionBatches(const MakeBatch& make, const RankContext& ctx, const RunPlan& plan)
      : make_(make), ctx_(ctx), plan_(plan) {}
  Batch train_batch(int64_t step, int64_t microbatch) override { return make_(ctx_, plan_, step, microbatch); }
  bool has_validation() const override { return false; }
  Batch validation_batch(int64_t index, int64_t) override {
    throw Error(ErrorKind::kInternal, {.where = "provide_data",
                                       .what = "data from a function has no validation batches",
                                       .got = std::to_string(index),
                                       .fix = "derive from RankData"});
  }

 private:
  const MakeBatch& make_;  // of the provider, which the engine keeps
  const RankContext& ctx_;
  const RunPlan& plan_;
};

class FunctionData : public DataProvider {
 public:
  FunctionData(std::string description, MakeBatch make)
      : description_(std::move(description)), make_(std::move(make)) {}
  std::unique_ptr<RankData> build_data(const RankContext& ctx, const RunPlan& plan) const override {
    return std::make_unique<FunctionBatches>(make_, ctx, plan);
  }
  std::string describe() const override { return description_; }

 private:
  std::string description_;
  MakeBatch make_;
};

}  // namespace

std::shared_ptr<ModelProvider> provide_model(MakeModel make) {
  return std::make_shared<FunctionModel>(std::move(make));
}

std::shared_ptr<DataProvider> provide_data(std::string description, MakeBatch make) {
  return std::make_shared<FunctionData>(std::move(description), std::move(make));
}

}  // namespace ranklab
