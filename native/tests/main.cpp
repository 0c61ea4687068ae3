// Runs every registered test, or those whose name contains the first argument. Exit code 1 when a claim fails.
#include <chrono>
#include <cstdlib>
#include <cstring>

#include "check.hpp"

int main(int count, char** arguments) {
  if (const char* given = std::getenv("BEAMWOOD_SEED")) check::seed = std::strtoull(given, nullptr, 10);
  int run = 0, failed = 0;
  const auto begin = std::chrono::steady_clock::now();
  for (const check::Test& test : check::tests()) {
    if (count > 1 && !std::strstr(test.name, arguments[1])) continue;
    check::failures = 0;
    test.run();
    ++run;
    if (check::failures != 0) {
      ++failed;
      std::printf("FAILED %s: %d claims\n", test.name, check::failures);
    }
    std::fflush(stdout);
  }
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  std::printf("%d native tests, %d failed, %.1f s\n", run, failed, seconds.count());
  return failed == 0 && run > 0 ? 0 : 1;
}
