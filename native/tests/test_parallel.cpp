// parallel.hpp: every task once, scratch memory of a worker never shared, errors and interrupts come out of the call.
#include <numeric>
#include <stdexcept>

#include "beamwood/parallel.hpp"
#include "check.hpp"

using namespace beamwood;

TEST(every_task_runs_once) {
  for (const unsigned threads : {1u, 2u, 8u, 64u})
    for (const std::size_t tasks : {0u, 1u, 2u, 7u, 1000u}) {
      std::vector<std::atomic<int>> times(tasks);
      std::vector<int> by_worker(threads, 0); // plain ints: TSan sees it if two tasks share a worker number
      parallel_for(Workers{threads}, tasks, [&](std::size_t task, unsigned worker) {
        ++times[task];
        ++by_worker[worker];
      });
      CHECK(std::all_of(times.begin(), times.end(), [](const auto& t) { return t == 1; }));
      CHECK(static_cast<std::size_t>(std::accumulate(by_worker.begin(), by_worker.end(), 0)) == tasks);
    }
}

TEST(an_error_of_a_task_comes_out_of_the_call) {
  for (const unsigned threads : {1u, 4u}) {
    bool caught = false;
    try {
      parallel_for(Workers{threads}, 100, [](std::size_t task, unsigned) {
        if (task == 13) throw std::runtime_error("thirteen");
      });
    } catch (const std::runtime_error&) {
      caught = true;
    }
    CHECK(caught);
  }
}

TEST(a_call_can_be_interrupted) {
  Workers workers{2, [] { return true; }};
  bool caught = false;
  try {
    // Tasks that take their time: the caller asks between its own, and must get to one before the helper is through.
    parallel_for(workers, 20000,
                 [](std::size_t, unsigned) { std::this_thread::sleep_for(std::chrono::milliseconds(1)); });
  } catch (const Interrupted&) {
    caught = true;
  }
  CHECK(caught);
}

TEST(a_question_that_throws_waits_for_the_helpers) {
  std::atomic<bool> helper_started{false}, asked{false};
  std::atomic<int> inside{0};
  bool caught = false;
  const Workers workers{2, [&]() -> bool {
                          if (!helper_started) return false;
                          asked = true;
                          throw std::runtime_error("asked");
                        }};
  try {
    parallel_for(workers, 1000000, [&](std::size_t, unsigned worker) {
      ++inside;
      if (worker == 1) {
        helper_started = true;
        while (!asked) std::this_thread::yield(); // the caller asks after its own task, or while it waits for this one
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
      }
      --inside;
    });
  } catch (const std::runtime_error&) {
    caught = true;
  }
  CHECK(caught);
  CHECK(inside.load() == 0);
}

TEST(a_helper_may_fail_while_its_caller_is_stopped) {
  for (int round = 0; round < 20; ++round) {
    std::atomic<bool> asked{false};
    bool caught = false;
    try {
      parallel_for({2, [&] { return asked.exchange(true) || true; }}, 2, [&](std::size_t, unsigned worker) {
        while (worker == 1 && !asked) std::this_thread::yield();
        if (worker == 1) throw std::runtime_error("both at once");
      });
    } catch (const std::exception&) {
      caught = true;
    }
    CHECK(caught);
  }
}

TEST(calls_inside_calls_end) {
  std::atomic<int> inner{0};
  parallel_for(Workers{4}, 20,
               [&](std::size_t, unsigned) { parallel_for(Workers{4}, 20, [&](std::size_t, unsigned) { ++inner; }); });
  CHECK(inner == 400);
}

#if defined(__x86_64__)
TEST(the_float_mode_is_set_and_put_back) {
  const unsigned before = _mm_getcsr();
  _mm_setcsr(before | 0x8040u); // flush to zero, subnormals are zero
  {
    const FloatMode mode;
    volatile float tiny = 1e-38f;
    tiny = tiny * 0.1f;
    CHECK(tiny != 0.0f);
  }
  CHECK((_mm_getcsr() & 0x8040u) == 0x8040u);
  _mm_setcsr(before);
}
#elif defined(__aarch64__)
TEST(the_float_mode_is_set_and_put_back) {
  std::uint64_t before = 0, after = 0;
  asm volatile("mrs %0, fpcr" : "=r"(before));
  const std::uint64_t flush = before | 1u << 24;
  asm volatile("msr fpcr, %0" : : "r"(flush));
  {
    const FloatMode mode;
    volatile float tiny = 1e-38f;
    tiny = tiny * 0.1f;
    CHECK(tiny != 0.0f);
  }
  asm volatile("mrs %0, fpcr" : "=r"(after));
  CHECK(after == flush);
  asm volatile("msr fpcr, %0" : : "r"(before));
}
#endif
