// CUDA graphs of the backend, over the stand-in for CUDA's runtime, which forbids during a capture what CUDA forbids:
// what is recorded, what its replays read and write, whose memory its tensors have, and what is no graph.
#include <c10/util/Exception.h>
#include <gmock/gmock.h>

#include <thread>

#include "core/comm/graph_recorder.h"
#include "core/sim/aten.h"
#include "tests/cuda/stand_in/cuda_runtime.h"
#include "tests/cuda/stand_in/host_tensors.h"
#include "tests/cuda/stand_in/world.h"
#include "tests/support/small_config.h"
#include "tests/support/training_record.h"

namespace ranklab::stand_in {
namespace {

using testing::HasSubstr;

void on_one_rank(const std::function<void(GraphRecorder&, const at::TensorOptions&)>& body) {
  ThreadsOverNccl(1, {}).run([&](Endpoint& endpoint) {
    const std::shared_ptr<GraphRecorder> recorder = endpoint.graph_recorder();
    ASSERT_NE(recorder, nullptr);
    body(*recorder, at::TensorOptions(at::kFloat).device(endpoint.device()));
  });
}

float first(const at::Tensor& tensor) { return tensor.cpu().const_data_ptr<float>()[0]; }

TEST(StreamGraph, ReplaysWhatWasRecordedOnWhatThereIsNow) {
  on_one_rank([](GraphRecorder& recorder, const at::TensorOptions& options) {
    at::Tensor x = at::empty({4}, options), sum = at::zeros({4}, options);
    const GraphBody body = [&] {
      at::Tensor doubled = at::empty({4}, options);
      doubled.copy_(x).add_(x);
      sum.add_(doubled);
      return GraphTensors{doubled};
    };
    x.fill_(1);
    EXPECT_EQ(first(recorder.run(body)[0]), 2);
    const auto graph = recorder.record(body);
    EXPECT_EQ(first(sum), 2) << "the recording itself computes nothing";
    for (const float value : {3.0F, 5.0F}) {
      x.fill_(value);
      graph->replay();
      EXPECT_EQ(first(graph->outputs()[0]), 2 * value);
    }
    EXPECT_EQ(first(sum), 2 + 6 + 10);
  });
}

// Asynchronous calls, on streams of their own: launched by each replay, on what there is then.
TEST(StreamGraph, CollectivesAreAPartOfIt) {
  for (const bool canonical : {false, true}) {
    CudaWorldOptions world;
    world.canonical_reductions = canonical;
    ThreadsOverNccl(2, world).run([&](Endpoint& endpoint) {
      const int rank = endpoint.global_rank();
      const CommunicatorPtr comm = endpoint.communicator({Axis::kTp, {0, 1}, rank});
      const at::TensorOptions options = at::TensorOptions(at::kFloat).device(endpoint.device());
      at::Tensor x = at::empty({4}, options);
      const GraphBody body = [&] {
        at::Tensor sum = at::empty({4}, options);
        sum.copy_(x);
        const WorkPtr reducing = comm->all_reduce_async(sum), gathering = comm->all_gather_async(x);
        const at::Tensor both = gathering->wait();
        return GraphTensors{reducing->wait().add_(x), both};
      };
      const std::shared_ptr<GraphRecorder> recorder = endpoint.graph_recorder();
      x.fill_(1);
      EXPECT_EQ(first(recorder->run(body)[0]), 3);
      const auto graph = recorder->record(body);
      for (const float value : {3.0F, 5.0F}) {
        x.fill_(value + static_cast<float>(rank));
        graph->replay();
        EXPECT_EQ(first(graph->outputs()[0]), 2 * value + 1 + value + static_cast<float>(rank));
        const at::Tensor both = graph->outputs()[1].cpu();
        EXPECT_EQ(both[0].item<float>(), value);
        EXPECT_EQ(both[4].item<float>(), value + 1);
      }
      EXPECT_EQ(first(comm->all_reduce(x)), 11) << "as it is, after replays";
    });
  }
}

TEST(StreamGraph, MessagesAndCallsNobodyWaitsForAreRefused) {
  ThreadsOverNccl(2, {}).run([&](Endpoint& endpoint) {
    const int rank = endpoint.global_rank();
    const CommunicatorPtr comm = endpoint.communicator({Axis::kTp, {0, 1}, rank});
    at::Tensor x = at::zeros({4}, at::TensorOptions(at::kFloat).device(endpoint.device()));
    comm->all_reduce(x);
    const auto thrown_by = [&](const GraphBody& body) -> std::string {
      try {
        endpoint.graph_recorder()->record(body);
      } catch (const Error& error) {
        return error.text().what + "; " + error.text().got;
      }
      return "";
    };
    EXPECT_THAT(thrown_by([&] {
                  rank == 0 ? comm->send(x, 1) : static_cast<void>(comm->recv(x, 0));
                  return GraphTensors{};
                }),
                HasSubstr("a message or a barrier cannot be part of a graph"));
    EXPECT_THAT(thrown_by([&] {
                  comm->all_reduce_async(x);
                  return GraphTensors{};
                }),
                HasSubstr("unjoined work"));
  });
}

TEST(StreamGraph, ItsMemoryIsItsOwn) {
  on_one_rank([](GraphRecorder& recorder, const at::TensorOptions& options) {
    std::vector<const void*> inside;
    const auto graph = recorder.record([&] {
      const at::Tensor given_back = at::zeros({1 << 20}, options), kept = at::zeros({1 << 20}, options);
      inside = {given_back.const_data_ptr(), kept.const_data_ptr()};
      return GraphTensors{kept};
    });
    std::vector<at::Tensor> others;
    for (int i = 0; i < 8; ++i) {
      others.push_back(at::zeros({1 << 20}, options));
      EXPECT_THAT(inside, testing::Not(testing::Contains(others.back().const_data_ptr())));
    }
  });
}

// As a forward and its backward: what the first one left is read by the second one, which may use its memory.
TEST(StreamGraph, OneBehindAnotherReadsWhatItMadeInTheSameMemory) {
  on_one_rank([](GraphRecorder& recorder, const at::TensorOptions& options) {
    at::Tensor x = at::zeros({1 << 20}, options), saved;
    const auto forward = recorder.record([&] {
      saved = at::empty({1 << 20}, options);
      saved.copy_(x);
      return GraphTensors{};
    });
    const void* const where = saved.const_data_ptr();
    bool reused = false;
    const auto backward = recorder.record(
        [&] {
          at::Tensor grad = at::empty({4}, options);
          grad.copy_(saved.narrow(0, 0, 4)).add_(1);
          saved.reset();
          const at::Tensor next = at::zeros({1 << 20}, options);
          reused = next.const_data_ptr() == where;
          return GraphTensors{grad};
        },
        forward.get());
    EXPECT_TRUE(reused);
    for (const float value : {3.0F, 5.0F}) {
      x.fill_(value);
      forward->replay();
      backward->replay();
      EXPECT_EQ(first(backward->outputs()[0]), value + 1);
    }
  });
}

TEST(StreamGraph, ItsTimesAreTheDevices) {
  on_one_rank([](GraphRecorder& recorder, const at::TensorOptions& options) {
    at::Tensor x = at::zeros({4}, options);
    const auto graph = recorder.record([&] {
      x.add_(1);
      return GraphTensors{};
    });
    const auto timing = graph->replay();
    EXPECT_EQ(first(x), 1);  // waits for it
    ASSERT_TRUE(timing->known());
    const CallTimes times = timing->call_times();
    EXPECT_LE(times.posted_wall_ns, times.matched_wall_ns);
    EXPECT_LE(times.matched_wall_ns, times.done_wall_ns);
  });
}

TEST(StreamGraph, ABodyThatWaitsForTheDeviceIsRefusedAndTheNextOneRecorded) {
  on_one_rank([](GraphRecorder& recorder, const at::TensorOptions& options) {
    at::Tensor x = at::zeros({4}, options);
    const GraphBody reads = [&] {
      x.add_(1);
      x.cpu();
      return GraphTensors{};
    };
    try {
      recorder.record(reads);
      ADD_FAILURE() << "recorded";
    } catch (const Error& error) {
      EXPECT_THAT(error.text().what, HasSubstr("cannot be recorded as a graph"));
      EXPECT_THAT(error.text().got, HasSubstr("when stream is capturing"));
    }
    recorder
        .record([&] {
          x.add_(1);
          return GraphTensors{};
        })
        ->replay();
    EXPECT_EQ(first(x), 1);
  });
}

TEST(StreamGraph, WhatTheBodyThrowsIsThrown) {
  on_one_rank([](GraphRecorder& recorder, const at::TensorOptions&) {
    try {
      recorder.record([]() -> GraphTensors { throw Error(ErrorKind::kNumeric, {.what = "of the body"}); });
      ADD_FAILURE() << "recorded";
    } catch (const Error& error) {
      EXPECT_EQ(error.text().what, "of the body");
    }
    EXPECT_EQ(live_graphs(), 0) << "what was recorded before is given back";
  });
}

// Errors of LibTorch's that have nothing to do with the capture, and exhausted memory also where it ended the capture.
TEST(StreamGraph, ErrorsThatTheCaptureDidNotMakeStayAsTheyAre) {
  on_one_rank([](GraphRecorder& recorder, const at::TensorOptions& options) {
    at::Tensor x = at::zeros({4}, options);
    const auto thrown_by = [&](const GraphBody& body) -> std::string {
      try {
        recorder.record(body);
      } catch (const c10::OutOfMemoryError&) {
        return "memory";
      } catch (const c10::Error& error) {
        return error.what_without_backtrace();
      }
      return "";
    };
    EXPECT_THAT(thrown_by([&]() -> GraphTensors {
                  x.add_(1);
                  TORCH_CHECK(false, "of an operator");
                }),
                HasSubstr("of an operator"));
    EXPECT_EQ(thrown_by([&]() -> GraphTensors {
                x.add_(1);
                cudaDeviceSynchronize();
                TORCH_CHECK_WITH(OutOfMemoryError, false, "none left");
              }),
              "memory");
    EXPECT_EQ(live_graphs(), 0);
  });
}

TEST(StreamGraph, ALaunchThatFailsIsNoRecordingThatFails) {
  on_one_rank([](GraphRecorder& recorder, const at::TensorOptions& options) {
    at::Tensor x = at::zeros({4}, options);
    const auto graph = recorder.record([&] {
      x.add_(1);
      return GraphTensors{};
    });
    EXPECT_EQ(live_graphs(), 1) << "the recording itself is not kept";
    fail_next_graph_launch();
    try {
      graph->replay();
      ADD_FAILURE() << "launched";
    } catch (const Error& error) {
      EXPECT_THAT(error.text().what, HasSubstr("could not launch"));
      EXPECT_EQ(error.text().got, "unspecified launch failure");
    }
    graph->replay();
    EXPECT_EQ(first(x), 1);
  });
}

// As the watchdog queries the calls of other streams.
TEST(CudaStandIn, ACaptureForbidsQueriesOfItsThreadAlone) {
  cudaStream_t stream = nullptr;
  cudaEvent_t before = nullptr, inside = nullptr;
  cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, 0);
  for (cudaEvent_t* event : {&before, &inside}) cudaEventCreateWithFlags(event, cudaEventDisableTiming);
  cudaEventRecord(before, stream);
  cudaStreamSynchronize(stream);
  EXPECT_EQ(cudaStreamBeginCapture(nullptr, cudaStreamCaptureModeThreadLocal), cudaErrorStreamCaptureUnsupported);
  ASSERT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), cudaSuccess);
  cudaEventRecord(inside, stream);
  std::jthread([&] {
    EXPECT_EQ(cudaEventQuery(before), cudaSuccess);
    EXPECT_EQ(cudaEventQuery(inside), cudaErrorCapturedEvent);
  }).join();
  EXPECT_EQ(cudaEventQuery(before), cudaErrorStreamCaptureUnsupported);
  cudaGraph_t graph = nullptr;
  EXPECT_EQ(cudaStreamEndCapture(stream, &graph), cudaErrorStreamCaptureInvalidated);
  EXPECT_EQ(graph, nullptr);
  cudaGetLastError();
}

// After its warm-ups.
TEST(NcclTraining, APassThatCannotBeRecordedEndsTheRunInWords) {
  const WaitingOperators waiting;
  TrainConfig config = small_config();
  config.backend = "cuda";
  config.cuda_graph = true;
  config.trace = false;
  config.num_microbatches = 4;
  config.train_iters = 1;
  try {
    record_training(
        config, {.make_world = [](int size) { return std::make_unique<ThreadsOverNccl>(size, CudaWorldOptions{}); }});
    ADD_FAILURE() << "recorded";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("cannot be recorded as a graph"));
    EXPECT_THAT(error.what(), HasSubstr("leave --cuda-graph out"));
  }
}

}  // namespace
}  // namespace ranklab::stand_in
