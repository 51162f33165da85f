// The three all-reduces that lesson 1 compares, built from messages. n ranks, S bytes:
//   naive   2(n-1) messages of S, sequentially at rank 0     tree   2 log2(n) steps of S (n a power of two)
//   ring    2(n-1) steps of S/n (Patarasuk and Yuan 2009); chunk c is added in the order of ranks c, c+1, ..., c-1
// Thread rule: its rank's thread; every rank calls the same one.
#pragma once
#include <functional>
#include <span>

#include "lessons/lesson_api.h"

namespace ranklab::lesson {

void naive_all_reduce(Comm& comm, std::span<double> data);
void tree_all_reduce(Comm& comm, std::span<double> data);
// after_step(step) is called when this rank has finished a step; steps are counted from 1.
void ring_all_reduce_reference(Comm& comm, std::span<double> data, const std::function<void(int)>& after_step = {});

}  // namespace ranklab::lesson
