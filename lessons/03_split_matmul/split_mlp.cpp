#include "lessons/03_split_matmul/split_mlp.h"

#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/base/numbers/philox.h"
#include "core/sim/aten.h"

namespace ranklab::lesson {
namespace {

constexpr int kRanks = 8;
constexpr double kEpsilon = 1e-6;

at::Tensor random(const std::string& name, std::vector<int64_t> shape, double scale) {
  at::Tensor out = at::empty(shape, at::kDouble);
  const RandomStream stream(3, RandomPurpose::kTest, name);
  for (int64_t i = 0; i < out.numel(); ++i) {
    out.mutable_data_ptr<double>()[i] = scale * stream.normal(static_cast<uint64_t>(i));
  }
  return out;
}

struct Inputs {
  at::Tensor x_TH = random("x", {kTokens, kMlpHidden}, 1.0);
  at::Tensor gain_H = 1 + random("gain", {kMlpHidden}, 0.2);
  at::Tensor a_HF = random("a", {kMlpHidden, kFeatures}, 0.2);
  at::Tensor b_FH = random("b", {kFeatures, kMlpHidden}, 0.1);
  at::Tensor dy_TH = random("dy", {kTokens, kMlpHidden}, 1.0);  // the loss is the sum of y times dy
};

at::Tensor inverse_rms(const at::Tensor& x) { return (x.square().mean(-1, true) + kEpsilon).rsqrt(); }

std::span<const double> read(const at::Tensor& t) {
  return {t.const_data_ptr<double>(), static_cast<size_t>(t.numel())};
}
std::span<double> write(const at::Tensor& t) { return {t.mutable_data_ptr<double>(), static_cast<size_t>(t.numel())}; }

// The computation on one rank.
class SplitMlp {
 public:
  SplitMlp(const MeetingPoints& meet, Outside outside, Comm& tp, const Inputs& in)
      : meet_(meet), outside_(outside), tp_(tp), gain_(in.gain_H) {
    const int64_t features = kFeatures / tp.size();
    a_ = in.a_HF.narrow(1, tp.rank() * features, features).contiguous();
    b_ = in.b_FH.narrow(0, tp.rank() * features, features).contiguous();
    x_ = my_tokens(in.x_TH);
    dy_ = my_tokens(in.dy_TH);
  }

  MlpTensors run() {
    const at::Tensor inv = inverse_rms(x_);
    const at::Tensor normed = all_tokens();
    meet_.enter(tp_, outside_, read((x_ * inv * gain_).contiguous()), write(normed));
    const at::Tensor middle = at::tanh(at::mm(normed, a_));
    MlpTensors out;
    out.y_TH = at::zeros_like(x_);
    meet_.leave(tp_, outside_, read(at::mm(middle, b_)), write(out.y_TH));
    out.y_TH.add_(x_);

    const at::Tensor dy = all_tokens();
    meet_.leave_backward(tp_, outside_, read(dy_), write(dy));
    out.b_FH = at::mm(middle.t(), dy);
    const at::Tensor before_tanh = at::mm(dy, b_.t()) * (1 - middle.square());
    out.a_HF = at::mm(normed.t(), before_tanh);
    const at::Tensor dn = at::zeros_like(x_);
    meet_.enter_backward(tp_, outside_, read(at::mm(before_tanh, a_.t())), write(dn));
    norm_backward(dn, inv, out);
    return out;
  }

  // This rank's shard of the dense tensors.
  at::Tensor my_tokens(const at::Tensor& whole) const {
    if (outside_ == Outside::kAllTokens) return whole;
    const int64_t each = whole.size(0) / tp_.size();
    return whole.narrow(0, tp_.rank() * each, each).contiguous();
  }

 private:
  static at::Tensor all_tokens() { return at::zeros({kTokens, kMlpHidden}, at::kDouble); }

  void norm_backward(const at::Tensor& dn, const at::Tensor& inv, MlpTensors& out) {
    out.gain_H = (dn * x_ * inv).sum(0);
    meet_.norm_gradient(tp_, outside_, write(out.gain_H));
    const at::Tensor scaled = dn * gain_;
    out.x_TH = dy_ + inv * (scaled - x_ * inv.square() * (scaled * x_).mean(-1, true));
  }

  const MeetingPoints& meet_;
  Outside outside_;
  Comm& tp_;
  at::Tensor gain_, a_, b_, x_, dy_;
};

double error_of(const at::Tensor& got, const at::Tensor& want, double scale) {
  const double error = (got - want).abs().max().item<double>() / scale;
  return std::isfinite(error) ? error : std::numeric_limits<double>::infinity();
}

void compare(const MlpTensors& got, const MlpTensors& dense, const SplitMlp& mlp, const Comm& tp, SplitRun& worst) {
  const auto raise = [](double& slot, const at::Tensor& mine, const at::Tensor& part, const at::Tensor& whole) {
    slot = std::max(slot, error_of(mine, part, whole.abs().max().item<double>()));
  };
  const int64_t features = kFeatures / tp.size();
  raise(worst.y_error, got.y_TH, mlp.my_tokens(dense.y_TH), dense.y_TH);
  raise(worst.x_error, got.x_TH, mlp.my_tokens(dense.x_TH), dense.x_TH);
  raise(worst.gain_error, got.gain_H, dense.gain_H, dense.gain_H);
  raise(worst.a_error, got.a_HF, dense.a_HF.narrow(1, tp.rank() * features, features), dense.a_HF);
  raise(worst.b_error, got.b_FH, dense.b_FH.narrow(0, tp.rank() * features, features), dense.b_FH);
}

}  // namespace

MlpTensors dense_mlp() {
  Inputs in;
  for (at::Tensor* t : {&in.x_TH, &in.gain_H, &in.a_HF, &in.b_FH}) t->requires_grad_(true);
  const at::Tensor normed = in.x_TH * inverse_rms(in.x_TH) * in.gain_H;
  const at::Tensor y = in.x_TH + at::mm(at::tanh(at::mm(normed, in.a_HF)), in.b_FH);
  torch::autograd::backward({y}, {in.dy_TH});
  return {y.detach(), in.x_TH.grad(), in.gain_H.grad(), in.a_HF.grad(), in.b_FH.grad()};
}

SplitRun split_mlp(const MeetingPoints& meet, Outside outside, const ExerciseLibrary* exercise) {
  const MlpTensors dense = dense_mlp();
  const Inputs inputs;
  std::vector<SplitRun> worst(kRanks);  // per rank
  SplitRun result;
  result.records =
      run_ranks({.dims = {.world = kRanks, .tp = kRanks}, .exercise = exercise}, [&](RankContext& context) {
        const auto tp = make_comm(context.comm(Axis::kTp));
        SplitMlp mlp(meet, outside, *tp, inputs);
        compare(mlp.run(), dense, mlp, *tp, worst[static_cast<size_t>(tp->rank())]);
      });
  for (const SplitRun& mine : worst) {
    for (double SplitRun::*error :
         {&SplitRun::y_error, &SplitRun::x_error, &SplitRun::gain_error, &SplitRun::a_error, &SplitRun::b_error}) {
      result.*error = std::max(result.*error, mine.*error);
    }
  }
  return result;
}

}  // namespace ranklab::lesson
