#include "tests/support/checked_recorder.h"

#include <ATen/record_function.h>

#include <algorithm>
#include <limits>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/sim/aten.h"
#include "core/sim/op_observer.h"

namespace ranklab {
namespace {

const void* storage_of(const at::Tensor& tensor) {
  return tensor.defined() && tensor.has_storage() ? tensor.storage().unsafeGetStorageImpl() : nullptr;
}

template <typename Use>
void each_tensor(const c10::IValue& value, const Use& use) {
  if (value.isTensor()) use(value.toTensor());
  if (value.isList())
    for (const c10::IValue& one : value.toListRef()) each_tensor(one, use);
}

// The operators that a body runs, one line each, with everything that a graph would fix about them.
class OpLines {
 public:
  // `made`: storages that count as made by the body.
  explicit OpLines(std::set<const void*> made) : made_(std::move(made)) {
    handle_ = at::addThreadLocalCallback(at::RecordFunctionCallback(&on_start, &on_end)
                                             .needsInputs(true)
                                             .needsOutputs(true)
                                             .scopes({at::RecordScope::FUNCTION}));
    of_thread = this;
  }
  ~OpLines() {
    of_thread = nullptr;
    at::removeCallback(handle_);
  }
  OpLines(const OpLines&) = delete;
  OpLines& operator=(const OpLines&) = delete;

  // Notes a call to other ranks. Its output counts as made by the body, like its operands.
  static void note(const Group& group, const Call& call) {
    if (of_thread == nullptr) return;
    std::ostringstream text;
    text << name(group.axis) << " " << name(call.verb) << " " << static_cast<int>(call.op);
    for (const at::Tensor& tensor : {call.input, call.output})
      if (tensor.defined()) text << " " << tensor.scalar_type() << tensor.sizes();
    text << " " << call.input_splits << " " << call.output_splits;
    of_thread->lines_.push_back(text.str());
  }

  // Call after the body. By now, tensors that an operator created inside itself (scalars, buffers of kernels) are
  // either gone or are its result, so all others came from outside the body.
  std::vector<std::string> lines() const {
    std::vector<std::string> lines = lines_;
    for (const Unknown& each : unknown_)
      if (!each.storage.expired() && !made_.contains(each.storage_address))
        lines[each.line] += strprintf(" @%p", each.data);
    return lines;
  }
  const std::set<const void*>& made() const { return made_; }

 private:
  struct Frame : at::ObserverContext {
    std::set<const void*> inputs;
    bool of_torch = false;
  };

  static std::unique_ptr<at::ObserverContext> on_start(const at::RecordFunction& fn) {
    auto frame = std::make_unique<Frame>();
    frame->of_torch = std::string_view(fn.name()).starts_with("aten::");
    const bool inside = of_thread->operators_ > 0;
    of_thread->operators_ += frame->of_torch;
    if (inside) return frame;
    of_thread->lines_.emplace_back();
    std::string line = fn.name();
    for (const c10::IValue& input : fn.inputs()) {
      line += " " + of_thread->text_of(input);
      each_tensor(input, [&](const at::Tensor& tensor) { frame->inputs.insert(storage_of(tensor)); });
    }
    of_thread->lines_.back() = std::move(line);
    return frame;
  }
  static void on_end(const at::RecordFunction& fn, at::ObserverContext* context) {
    const auto& frame = *static_cast<const Frame*>(context);
    of_thread->operators_ -= frame.of_torch;
    if (of_thread->operators_ > 0) return;
    for (const c10::IValue& output : fn.outputs())
      each_tensor(output, [&](const at::Tensor& tensor) {
        if (!frame.inputs.contains(storage_of(tensor))) of_thread->made_.insert(storage_of(tensor));
      });
  }

  struct Unknown {
    size_t line;
    c10::weak_intrusive_ptr<c10::StorageImpl> storage;
    const void* storage_address;
    const void* data;
  };

  std::string text_of(const c10::IValue& value) {
    std::ostringstream text;
    if (value.isTensor()) {
      const at::Tensor& tensor = value.toTensor();
      if (!tensor.defined()) return "none";
      text << tensor.scalar_type() << tensor.sizes() << tensor.strides();
      if (tensor.unsafeGetTensorImpl()->is_wrapped_number()) {
        text << "=" << number_of(tensor);
      } else if (!made_.contains(storage_of(tensor)) && tensor.has_storage()) {
        unknown_.push_back(
            {lines_.size() - 1, tensor.storage().getWeakStorageImpl(), storage_of(tensor), tensor.const_data_ptr()});
      }
    } else if (value.isTensorList()) {
      for (const c10::IValue& one : value.toListRef()) text << text_of(one);
    } else {
      text << value;
    }
    return text.str();
  }
  // Reads a scalar without an operator, because an operator would be noted.
  static double number_of(const at::Tensor& scalar) {
    if (scalar.scalar_type() == at::kDouble) return *scalar.const_data_ptr<double>();
    return scalar.scalar_type() == at::kLong ? static_cast<double>(*scalar.const_data_ptr<int64_t>()) : 0;
  }

  static thread_local OpLines* of_thread;
  at::CallbackHandle handle_;
  int operators_ = 0;  // nesting of LibTorch's operators; those called by another one are how the host computes it
  std::vector<std::string> lines_;
  std::set<const void*> made_;  // storages created by this body's operators
  std::vector<Unknown> unknown_;
};
thread_local OpLines* OpLines::of_thread = nullptr;

[[noreturn]] void refuse(const std::string& what, const std::string& got, const std::string& want) {
  throw Error(ErrorKind::kEnvironment, {.where = "checked recorder", .what = what, .got = got, .want = want});
}

// Of the calls to other ranks, only collectives can be recorded.
void check_calls(const std::vector<std::string>& lines) {
  for (const std::string& line : lines)
    for (const std::string host : {" send ", " recv ", " barrier "})
      if (line.find(host) != std::string::npos)
        refuse("a body that is recorded calls another rank's host", line, "collectives alone");
}

// The only values that a body may read on the host are whole numbers: the check of tokens reads them, which it never
// does on a device.
void check_reads(const std::vector<std::string>& lines) {
  for (const std::string& line : lines)
    for (const std::string reads : {"aten::item ", "aten::_local_scalar_dense "})
      if (line.starts_with(reads) && !line.starts_with(reads + "Long"))
        refuse("a body that is recorded reads a tensor's value", line, "none");
}

class CheckedGraph final : public RecordedGraph {
 public:
  CheckedGraph(GraphBody body, std::shared_ptr<RecorderCounts> counts, const CheckedGraph* before)
      : body_(std::move(body)), counts_(std::move(counts)), before_(before) {
    ++counts_->recordings;
    ++counts_->live;
    {
      const NoCostScope no_cost;
      outputs_ = watched(lines_);
    }
    check_reads(lines_);
    check_calls(lines_);
    const at::NoGradGuard no_grad;
    const NoCostScope no_cost;
    for (at::Tensor& output : outputs_)
      if (output.defined()) output.fill_(std::numeric_limits<double>::quiet_NaN());
  }
  ~CheckedGraph() override { --counts_->live; }
  CheckedGraph(const CheckedGraph&) = delete;
  CheckedGraph& operator=(const CheckedGraph&) = delete;

  std::shared_ptr<const CallTiming> replay() override {
    ++counts_->replays;
    std::vector<std::string> lines;
    const GraphTensors made = watched(lines);
    for (size_t i = 0; i < std::max(lines.size(), lines_.size()); ++i) {
      const std::string got = i < lines.size() ? lines[i] : "no operator",
                        want = i < lines_.size() ? lines_[i] : "no operator";
      if (got != want) refuse("a replay would not do what its recording did", got, want);
    }
    const at::NoGradGuard no_grad;
    const NoCostScope no_cost;
    for (size_t i = 0; i < made.size(); ++i)
      if (made[i].defined()) outputs_[i].copy_(made[i]);
    return nullptr;
  }
  const GraphTensors& outputs() const override { return outputs_; }

 private:
  GraphTensors watched(std::vector<std::string>& lines) {
    OpLines ops(before_ == nullptr ? std::set<const void*>() : before_->made_);
    GraphTensors outputs = body_();
    lines = ops.lines();
    made_ = ops.made();
    return outputs;
  }

  GraphBody body_;
  std::shared_ptr<RecorderCounts> counts_;
  const CheckedGraph* before_;
  std::vector<std::string> lines_;
  std::set<const void*> made_;  // by the last call of the body, and by those of the graphs before
  GraphTensors outputs_;
};

class CheckedRecorder final : public GraphRecorder {
 public:
  explicit CheckedRecorder(std::shared_ptr<RecorderCounts> counts) : counts_(std::move(counts)) {}
  GraphTensors run(const GraphBody& body) override {
    ++counts_->warm_ups;
    return body();
  }
  std::unique_ptr<RecordedGraph> record(const GraphBody& body, const RecordedGraph* before) override {
    return std::make_unique<CheckedGraph>(body, counts_, static_cast<const CheckedGraph*>(before));
  }

 private:
  std::shared_ptr<RecorderCounts> counts_;
};

// Notes the calls that a body makes, because those in which the host takes part cannot be recorded.
class NotedCommunicator final : public Communicator {
 public:
  explicit NotedCommunicator(CommunicatorPtr inner) : Communicator(inner->group()), inner_(std::move(inner)) {}
  bool open_lanes(const std::vector<MessageLane>& lanes) override { return inner_->open_lanes(lanes); }
  WorkPtr post(Call call) override {
    OpLines::note(group(), call);
    return inner_->post(std::move(call));
  }

 private:
  CommunicatorPtr inner_;
};

class RecordingEndpoint final : public Endpoint {
 public:
  RecordingEndpoint(Endpoint& inner, std::shared_ptr<RecorderCounts> counts)
      : inner_(inner), counts_(std::move(counts)) {}
  int global_rank() const override { return inner_.global_rank(); }
  int world_size() const override { return inner_.world_size(); }
  c10::Device device() const override { return inner_.device(); }
  c10::Device control_device() const override { return inner_.control_device(); }
  CommunicatorPtr communicator(const Group& group) override {
    return std::make_shared<NotedCommunicator>(inner_.communicator(group));
  }
  std::shared_ptr<GraphRecorder> graph_recorder() override { return make_checked_recorder(counts_); }

 private:
  Endpoint& inner_;
  std::shared_ptr<RecorderCounts> counts_;
};

class RecordingWorld final : public World {
 public:
  RecordingWorld(std::unique_ptr<World> inner, std::shared_ptr<RecorderCounts> counts)
      : inner_(std::move(inner)), counts_(std::move(counts)) {}
  int size() const override { return inner_->size(); }
  Capabilities capabilities() const override { return inner_->capabilities().with(Capability::kRecordedPasses); }
  std::string describe() const override { return inner_->describe() + ", a recorder that checks"; }
  void run(const std::function<void(Endpoint&)>& body) override {
    inner_->run([&](Endpoint& endpoint) {
      RecordingEndpoint recording(endpoint, counts_);
      body(recording);
    });
  }

 private:
  std::unique_ptr<World> inner_;
  std::shared_ptr<RecorderCounts> counts_;
};

}  // namespace

std::shared_ptr<GraphRecorder> make_checked_recorder(std::shared_ptr<RecorderCounts> counts) {
  return std::make_shared<CheckedRecorder>(std::move(counts));
}

std::unique_ptr<World> with_checked_recorder(std::unique_ptr<World> inner, std::shared_ptr<RecorderCounts> counts) {
  return std::make_unique<RecordingWorld>(std::move(inner), std::move(counts));
}

}  // namespace ranklab
