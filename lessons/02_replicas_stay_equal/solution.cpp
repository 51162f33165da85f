// Lesson 2, solution.
#include "exercise.h"

using namespace ranklab::lesson;

extern "C" void gradient_ready(Comm& comm, Bucket& bucket) {
  --bucket.missing;
  if (bucket.missing == 0) bucket.ticket = comm.start_all_reduce(bucket.data);
}

extern "C" void finish(Comm& comm, std::span<Bucket> buckets) {
  for (Bucket& bucket : buckets) {
    comm.wait(bucket.ticket);
    for (double& gradient : bucket.data) gradient /= comm.size();
  }
}
