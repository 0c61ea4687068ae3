// The bindings of a server's long work: what ends it, what reads a long request, how it makes way for short ones.
#include "../bindings.hpp"

#include <nanobind/stl/optional.h>
#include <sys/mman.h>
#ifdef __linux__
#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

#include <algorithm>
#include <cstdint>
#include <string_view>

#include "beamwood/wire/pairs.hpp"

using namespace beamwood;

namespace {

// Ends the native work of whoever has entered it. Set from any thread, at any time, once.
class Stop {
public:
  void set() noexcept { flag_.store(true, std::memory_order_relaxed); }
  void enter() noexcept { before_ = std::exchange(current_stop, &flag_); }
  void leave() noexcept { current_stop = before_; }

private:
  StopFlag flag_{false};
  const StopFlag* before_ = nullptr;
};

// (ids, values, from, to, others, the first odd one or None, whether the field stands twice): see pairs.hpp.
nb::tuple read_pairs(const nb::bytes& body) {
  const std::string_view bytes(body.c_str(), body.size());
  FeaturePairs found;
  {
    const Unlocked released;
    found = PairReader(bytes).read();
  }
  return nb::make_tuple(give(std::move(found.ids)), give(std::move(found.values)), found.from, found.to, found.others,
                        found.odd, found.twice);
}

#ifdef __linux__
// What the kernel is told of a thread: struct sched_attr, as much of it as every kernel knows.
struct Turns {
  std::uint32_t size = 48, policy = 0;
  std::uint64_t flags = 0;
  std::int32_t nice = 0;
  std::uint32_t priority = 0;
  std::uint64_t slice = 0, deadline = 0, period = 0; // nanoseconds
};

// Changes how the calling thread takes turns with others; not where someone has given it a policy of its own.
template <class Change> void take_turns(Change&& change) {
  Turns turns;
  if (syscall(SYS_sched_getattr, 0, &turns, turns.size, 0) != 0) return;
  if (turns.policy != SCHED_OTHER && turns.policy != SCHED_BATCH) return;
  turns.size = sizeof(Turns);
  change(turns);
  static_cast<void>(syscall(SYS_sched_setattr, 0, &turns, 0));
}

// From now on this thread makes way for any other as soon as that wakes. Two things do that: the kernel lets those go
// first that ask for less time at a stretch (Linux 6.12; older ones take no notice), and whoever has had more than its
// share waits the less, the faster the time of the other runs: ten steps of niceness below the process, nine times as
// fast. Beside other programs that never rest such a thread still gets a tenth of a processor.
void give_way() {
  constexpr int steps = 10, last = 19;
  const int usual = getpriority(PRIO_PROCESS, static_cast<id_t>(getpid()));
  take_turns([&](Turns& turns) {
    turns.slice = 50'000'000;
    if (syscall(SYS_gettid) != getpid()) turns.nice = std::min(last, usual + steps);
  });
}

// From now on this thread asks for little time at a stretch, so that it goes first when it wakes. Its share stays.
void go_first() {
  take_turns([](Turns& turns) { turns.slice = 100'000; });
}
#else // threads take turns as the system has it
void give_way() {}
void go_first() {}
#endif

// Reads a byte of every page, so that those who follow need not wait for the disk or the system.
std::uint64_t touch(const In<std::uint8_t>& bytes) {
  constexpr std::size_t page = 4096, piece = 4u << 20;
  const Unlocked released;
  std::uint64_t sum = 0;
  for (std::size_t from = 0; from < bytes.shape(0); from += piece) {
    const std::size_t to = std::min(bytes.shape(0), from + piece);
#ifdef MADV_POPULATE_READ // one call for all pages of a piece, instead of a fault for each
    const auto address = reinterpret_cast<std::uintptr_t>(bytes.data() + from) & ~(page - 1);
    madvise(reinterpret_cast<void*>(address), to - from, MADV_POPULATE_READ);
#endif
    for (std::size_t at = from; at < to; at += page) sum += static_cast<const volatile std::uint8_t*>(bytes.data())[at];
  }
  return sum;
}

} // namespace

void bind_long_work(nb::module_& m) {
  nb::exception<Stopped>(m, "Stopped");
  nb::class_<Stop>(m, "Stop", "Ends native work: `with stop:` searches on one thread, `stop.set()` on another.")
      .def(nb::init<>())
      .def("set", &Stop::set, "Ends what runs, and what is begun, inside `with`: it raises Stopped.")
      .def("__enter__", &Stop::enter)
      .def(
          "__exit__", [](Stop& self, nb::handle, nb::handle, nb::handle) { self.leave(); }, nb::arg("kind").none(),
          nb::arg("error").none(), nb::arg("traceback").none());
  m.def("read_pairs", &read_pairs, nb::arg("body"), "The plain pairs of a request's features: see pairs.hpp.");
  m.def("give_way", &give_way, "Lets other threads of the machine go before this one as soon as they wake.");
  m.def("go_first", &go_first, "Lets this thread go before others as soon as it wakes.");
  m.def("touch", &touch, nb::arg("bytes"), "Reads a byte of every page; what they add up to.");
}
