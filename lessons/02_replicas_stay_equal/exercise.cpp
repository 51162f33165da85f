// Lesson 2, exercise: data parallelism that overlaps its communication.
//
// Eight ranks hold the same weights and train on different samples. Backward goes from the last layer to the first and
// calls gradient_ready() after each layer; when it is over, finish() is called, and then each rank updates its weights
// with what is in the buckets. Keep the replicas equal, with as little exposed communication as possible:
//
//   average   every rank ends up with the mean of all ranks' gradients, not with their sum
//   bucket    one all-reduce for each bucket, once all its gradients are ready
//   overlap   start it at once, wait for it as late as possible
//
// What you have (lesson_api.h, exercise.h):
//   bucket.data  bucket.missing  bucket.ticket
//   comm.size()   comm.start_all_reduce(span) returns a ticket at once   comm.wait(ticket)
//   comm.all_reduce(span) is both in one
//
// Check with:  ./ranklab lesson check 2
#include "exercise.h"

using namespace ranklab::lesson;

// ---- your turn: both functions ----

extern "C" void gradient_ready([[maybe_unused]] Comm& comm, [[maybe_unused]] Bucket& bucket) {}

extern "C" void finish([[maybe_unused]] Comm& comm, [[maybe_unused]] std::span<Bucket> buckets) {}

// ---- end of your turn ----
