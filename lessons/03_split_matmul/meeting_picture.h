// Shows what the learner's five functions do on the arrows of the exercise's picture. Thread rule: pure, except for the
// learner's functions.
#pragma once
#include "lessons/03_split_matmul/exercise.h"
#include "lessons/03_split_matmul/split_mlp.h"
#include "lessons/screen.h"

namespace ranklab::lesson {

void draw_meeting_points(Screen& picture, const MeetingPoints& meet);

}  // namespace ranklab::lesson
