#include "backends/cpu_sim/gloo_group.h"

#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/hash_store.h>
#include <gloo/rendezvous/prefix_store.h>
#include <gloo/transport/tcp/device.h>

#include <exception>
#include <thread>

namespace ranklab::cpu_sim {

const std::shared_ptr<gloo::Context>& GlooGroup::context(int seat) {
  std::call_once(once_, [this] {
    contexts_ = connect_();
    connected_.store(true, std::memory_order_release);
  });
  return contexts_[static_cast<size_t>(seat)];
}

void GlooGroup::close() {
  if (!connected_.load(std::memory_order_acquire)) return;
  for (const auto& context : contexts_)
    if (context) context->closeConnections();
}

std::shared_ptr<gloo::Context> connect_member(int seat, int size, std::shared_ptr<gloo::transport::Device> device,
                                              std::chrono::milliseconds timeout, gloo::rendezvous::Store& store,
                                              const std::string& prefix) {
  gloo::rendezvous::PrefixStore prefixed(prefix, store);
  auto context = std::make_shared<gloo::rendezvous::Context>(seat, size);
  context->setTimeout(timeout);
  context->connectFullMesh(prefixed, device);
  return context;
}

GlooContexts connect_threads(int size, std::shared_ptr<gloo::transport::Device> device,
                             std::chrono::milliseconds timeout) {
  gloo::rendezvous::HashStore store;
  GlooContexts contexts(static_cast<size_t>(size));
  std::vector<std::exception_ptr> errors(static_cast<size_t>(size));
  std::vector<std::thread> threads;
  for (int seat = 0; seat < size; ++seat) {
    threads.emplace_back([&, seat] {
      const auto index = static_cast<size_t>(seat);
      try {
        contexts[index] = connect_member(seat, size, device, timeout, store, "threads");
      } catch (...) {
        errors[index] = std::current_exception();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::exception_ptr& error : errors)
    if (error) std::rethrow_exception(error);
  return contexts;
}

std::shared_ptr<gloo::transport::Device> make_tcp_device(const std::string& address) {
  gloo::transport::tcp::attr attr;
  attr.hostname = address;
  return gloo::transport::tcp::CreateDevice(attr);
}

}  // namespace ranklab::cpu_sim
