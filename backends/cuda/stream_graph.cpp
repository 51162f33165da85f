#include "backends/cuda/stream_graph.h"

#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/util/Exception.h>
#include <cuda_runtime_api.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include "core/base/error.h"
#include "core/trace/tracer.h"

namespace ranklab {
namespace {

namespace allocator = c10::cuda::CUDACachingAllocator;

[[noreturn]] void refuse_recording(const std::string& got) {
  throw Error(ErrorKind::kEnvironment,
              {.where = "--cuda-graph",
               .what = "a microbatch's forward and backward cannot be recorded as a graph",
               .got = got,
               .want = "kernels alone, without waits of the host, copies from its pageable memory, or new libraries",
               .fix = "leave --cuda-graph out"});
}

void accept(cudaError_t code, const char* step) {
  if (code == cudaSuccess) return;
  cudaGetLastError();  // clears the error, which the next call would report too
  refuse_recording(std::string(step) + ": " + cudaGetErrorString(code));
}

// Frees the recording, which is no longer needed once it has been instantiated.
struct DestroyGraph {
  void operator()(cudaGraph_t graph) const { cudaGraphDestroy(graph); }
};
using OwnedGraph = std::unique_ptr<std::remove_pointer_t<cudaGraph_t>, DestroyGraph>;

void check_launch(cudaError_t code) {
  if (code == cudaSuccess) return;
  cudaGetLastError();
  RANKLAB_CHECK(false, ErrorKind::kEnvironment, .where = "--cuda-graph",
                .what = "the GPU could not launch a microbatch's recorded pass", .got = cudaGetErrorString(code),
                .want = "no error",
                .fix = "run again without --cuda-graph: an error of one of its kernels then names the operator");
}

// LibTorch counts the pools of its own graphs from 1 in the first number, and users' pools in the second.
c10::MempoolId_t new_pool() {
  static std::atomic<c10::CaptureId_t> pools{0};
  return {0, (c10::CaptureId_t{1} << 62) + ++pools};
}

class ReplaySpan final : public CallTiming, public WatchedCall {
 public:
  explicit ReplaySpan(DeviceClock::AnchorPtr anchor)
      : begin(cudaEventDefault), end(cudaEventDefault), anchor_(std::move(anchor)), posted_ns_(wall_now_ns()) {}
  bool known() const override { return end.query(); }
  State state() const override {
    if (end.query()) return State::kDone;
    return begin.query() ? State::kRunning : State::kWaiting;
  }
  std::string describe() const override { return "a microbatch's recorded pass"; }
  CallTimes call_times() const override {
    CallTimes times;
    times.posted_wall_ns = posted_ns_;
    times.matched_wall_ns = std::max(posted_ns_, anchor_->wall_ns_of(begin));
    times.done_wall_ns = std::max(times.matched_wall_ns, anchor_->wall_ns_of(end));
    return times;
  }

  at::cuda::CUDAEvent begin, end;

 private:
  DeviceClock::AnchorPtr anchor_;
  int64_t posted_ns_;
};

// The memory of the tensors of a graph, or of graphs that are replayed in turn, reserved for them as long as one of
// them exists.
class GraphPool {
 public:
  explicit GraphPool(c10::DeviceIndex device) : device_(device) {}
  ~GraphPool() {
    for (; opened_ > 0; --opened_) allocator::releasePool(device_, id_);
  }
  GraphPool(const GraphPool&) = delete;
  GraphPool& operator=(const GraphPool&) = delete;

  // Until close(), allocations for streams that are being captured come from the pool: the recorder's own stream, and
  // the streams of the collectives that it waits for. No other capture is in progress on the device.
  void open() {
    allocator::beginAllocateToPool(device_, id_, [](cudaStream_t asked) {
      cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
      return cudaStreamIsCapturing(asked, &status) == cudaSuccess && status == cudaStreamCaptureStatusActive;
    });
    ++opened_;
  }
  void close() { allocator::endAllocateToPool(device_, id_); }

 private:
  c10::DeviceIndex device_;
  c10::MempoolId_t id_ = new_pool();
  int opened_ = 0;
};

// The launches of a graph, whose collectives may wait for a peer that never arrives.
class WatchedLaunches final : public WatchedComm {
 public:
  explicit WatchedLaunches(NcclContextPtr context) : context_(std::move(context)) { context_->watchdog.add(this); }
  ~WatchedLaunches() override { context_->watchdog.remove(this); }
  WatchedLaunches(const WatchedLaunches&) = delete;
  WatchedLaunches& operator=(const WatchedLaunches&) = delete;
  std::string describe() const override { return "recorded passes"; }
  std::optional<Error> reported_error(bool& /*remote*/) override { return std::nullopt; }

 private:
  NcclContextPtr context_;
};

class StreamGraph final : public RecordedGraph {
 public:
  StreamGraph(NcclContextPtr context, const c10::cuda::CUDAStream& stream, const GraphBody& body,
              const StreamGraph* before)
      : context_(std::move(context)),
        watched_(context_),
        pool_(before != nullptr ? before->pool_ : std::make_shared<GraphPool>(context_->device.index())) {
    const c10::cuda::CUDAStreamGuard here(stream);
    pool_->open();
    OwnedGraph graph;
    const std::exception_ptr thrown = capture(stream.stream(), body, graph);
    pool_->close();
    if (thrown) std::rethrow_exception(thrown);
    accept(cudaGraphInstantiate(&launched_, graph.get(), 0), "making it");
  }
  ~StreamGraph() override {
    // After an error, the peers of its collectives may never arrive.
    if (std::uncaught_exceptions() > 0) {
      context_->failure.set_unwinding();
      context_->watchdog.abort_now();
    }
    {
      const Watchdog::HostCall call(context_->watchdog, "waiting for a recorded pass to end");
      cudaDeviceSynchronize();  // a replay may be in progress
    }
    outputs_.clear();
    if (launched_ != nullptr) cudaGraphExecDestroy(launched_);
  }
  StreamGraph(const StreamGraph&) = delete;
  StreamGraph& operator=(const StreamGraph&) = delete;

  std::shared_ptr<const CallTiming> replay() override {
    context_->failure.throw_if_set();
    const c10::cuda::CUDAStream stream = c10::cuda::getCurrentCUDAStream(context_->device.index());
    auto span = std::make_shared<ReplaySpan>(context_->clock.anchor());
    span->begin.record(stream);
    check_launch(cudaGraphLaunch(launched_, stream.stream()));
    span->end.record(stream);
    watched_.add(span);
    return span;
  }
  const GraphTensors& outputs() const override { return outputs_; }

 private:
  // A capture must be ended whatever the body threw.
  std::exception_ptr capture(cudaStream_t stream, const GraphBody& body, OwnedGraph& graph) {
    std::exception_ptr thrown;
    try {
      accept(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "beginning");
      try {
        outputs_ = body();
      } catch (...) {
        thrown = std::current_exception();
      }
      cudaGraph_t recorded = nullptr;
      const cudaError_t code = cudaStreamEndCapture(stream, &recorded);
      graph.reset(recorded);
      if (thrown && code != cudaSuccess)
        thrown = of_capture(thrown);
      else if (!thrown)
        accept(code, "ending");
    } catch (...) {
      thrown = std::current_exception();
    }
    if (thrown) {
      outputs_.clear();
      cudaGetLastError();
    }
    return thrown;
  }
  // The exception to report if the body threw and the capture failed. An error of LibTorch is the one that ended the
  // capture and is reported in our words; an out-of-memory error stays what it is, and so do our own errors.
  static std::exception_ptr of_capture(const std::exception_ptr& thrown) {
    try {
      try {
        std::rethrow_exception(thrown);
      } catch (const c10::OutOfMemoryError&) {
        throw;
      } catch (const c10::Error& error) {
        const std::string text = error.what_without_backtrace();
        refuse_recording(text.substr(0, text.find('\n')));
      }
    } catch (...) {
      return std::current_exception();
    }
  }

  NcclContextPtr context_;
  WatchedLaunches watched_;
  std::shared_ptr<GraphPool> pool_;
  cudaGraphExec_t launched_ = nullptr;
  GraphTensors outputs_;
};

class StreamRecorder final : public GraphRecorder {
 public:
  explicit StreamRecorder(NcclContextPtr context)
      : context_(std::move(context)), stream_(c10::cuda::getStreamFromPool(false, context_->device.index())) {}

  GraphTensors run(const GraphBody& body) override {
    const c10::cuda::CUDAStream rank = current();
    follow(rank, stream_);
    GraphTensors outputs;
    {
      const c10::cuda::CUDAStreamGuard here(stream_);
      outputs = body();
    }
    follow(stream_, rank);
    // When the outputs are freed, their memory is reused by later work of this stream, which waits for what the rank's
    // stream does with them now.
    return outputs;
  }
  std::unique_ptr<RecordedGraph> record(const GraphBody& body, const RecordedGraph* before) override {
    cudaDeviceSynchronize();
    // Frees what warm-ups allocated, for the graph's pool.
    if (!context_->options.shares_process) allocator::emptyCache();
    return std::make_unique<StreamGraph>(context_, stream_, body, static_cast<const StreamGraph*>(before));
  }

 private:
  c10::cuda::CUDAStream current() const { return c10::cuda::getCurrentCUDAStream(context_->device.index()); }
  static void follow(const c10::cuda::CUDAStream& first, const c10::cuda::CUDAStream& then) {
    at::cuda::CUDAEvent reached;
    reached.record(first);
    reached.block(then);
  }

  NcclContextPtr context_;
  c10::cuda::CUDAStream stream_;
};

}  // namespace

std::shared_ptr<GraphRecorder> make_stream_recorder(NcclContextPtr context) {
  return std::make_shared<StreamRecorder>(std::move(context));
}

}  // namespace ranklab
