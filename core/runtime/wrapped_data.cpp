#include "core/runtime/wrapped_data.h"

namespace ranklab {
namespace {

class WrappedProvider final : public DataProvider {
 public:
  WrappedProvider(std::shared_ptr<DataProvider> inner, WrapData wrap)
      : inner_(std::move(inner)), wrap_(std::move(wrap)) {}
  std::unique_ptr<RankData> build_data(const RankContext& ctx, const RunPlan& plan) const override {
    return wrap_(inner_->build_data(ctx, plan), ctx, plan);
  }
  std::string describe() const override { return inner_->describe(); }
  std::map<std::string, std::string> identity() const override { return inner_->identity(); }
  std::shared_ptr<TextCodec> text() const override { return inner_->text(); }

 private:
  std::shared_ptr<DataProvider> inner_;
  WrapData wrap_;
};

}  // namespace

std::shared_ptr<DataProvider> wrap_data(std::shared_ptr<DataProvider> inner, WrapData wrap) {
  return std::make_shared<WrappedProvider>(std::move(inner), std::move(wrap));
}

}  // namespace ranklab
