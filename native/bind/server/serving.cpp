// The bindings of the server: a plain search request in, all bytes of its answer out, counted, timed and logged.
//
// The law: what it does for a request is what the server's application does for it (server/app/);
// where it cannot, it does nothing and says so. It runs on the event loop and keeps Python's lock: only questions that
// are known to be short are answered here, and passing the lock to and fro would take longer than they do.
#include "../find.hpp"

#include <array>
#include <bit>
#include <cstring>
#include <ctime>
#include <nanobind/stl/array.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include "beamwood/wire/costs.hpp"
#include "beamwood/wire/question.hpp"

using namespace beamwood;

namespace {

using Clock = std::chrono::steady_clock;

std::uint64_t nanoseconds_since(Clock::time_point begun) {
  return static_cast<std::uint64_t>(std::chrono::nanoseconds(Clock::now() - begun).count());
}

void put_fixed(double value, int digits, std::string& out) {
  char text[64];
  out.append(text, std::to_chars(text, text + sizeof text, value, std::chars_format::fixed, digits).ptr);
}

// Counts searches in memory that Python made: histograms are a cell for each bound, one for what is above, and a sum.
struct SearchCounts {
  Out<double> cells;
  std::size_t queue, engine, total, beam, rows, answers; // where they stand
  std::vector<double> seconds, beams;                    // bounds of the histograms

  void add(std::uint64_t in_queue, std::uint64_t in_engine, std::uint64_t in_all, std::uint32_t width,
           std::uint32_t count) {
    put(queue, seconds, static_cast<double>(in_queue) / 1e9);
    put(engine, seconds, static_cast<double>(in_engine) / 1e9);
    put(total, seconds, static_cast<double>(in_all) / 1e9);
    put(beam, beams, width);
    cells.data()[rows] += count;
  }
  void put(std::size_t at, const std::vector<double>& bounds, double value) {
    const auto above = std::lower_bound(bounds.begin(), bounds.end(), value);
    cells.data()[at + static_cast<std::size_t>(above - bounds.begin())] += 1.0;
    cells.data()[at + bounds.size() + 1] += value;
  }
};

// Lines of JSON about requests that wait to be written.
class LogLines {
public:
  LogLines(bool kept, std::uint32_t worker) : kept_(kept), worker_(worker) {}

  void add(std::string_view id, std::string_view method, std::string_view model, std::uint64_t total,
           std::uint64_t engine) {
    if (!kept_) return;
    if (lines_.size() > most) return void(++lost_);
    lines_ += "{\"time\":\"";
    put_time();
    lines_ += "\",\"event\":\"request\",\"worker\":";
    json::put_number(std::uint64_t{worker_}, lines_);
    ((lines_ += ",\"id\":\"") += id) += "\",\"method\":\"";
    (lines_ += method) += "\",\"route\":\"/v1/search\",\"status\":200,\"ms\":";
    put_fixed(static_cast<double>(total) / 1e6, 3, lines_);
    ((lines_ += ",\"model\":\"") += model) += "\",\"queue_ms\":0.0,\"engine_ms\":";
    put_fixed(static_cast<double>(engine) / 1e6, 3, lines_);
    lines_ += "}\n";
  }

  // (lines, how many were lost since the last time because no one took them)
  nb::tuple take() {
    const nb::tuple taken = nb::make_tuple(nb::bytes(lines_.data(), lines_.size()), std::exchange(lost_, 0));
    lines_.clear();
    return taken;
  }

private:
  static constexpr std::size_t most = 8u << 20; // bytes, as in log.py

  void put_time() {
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    const auto second = std::chrono::floor<std::chrono::seconds>(now);
    if (second != second_ || stamp_.empty()) {
      const std::time_t moment = second.count();
      std::tm parts{};
      gmtime_r(&moment, &parts);
      char text[32];
      stamp_.assign(text, std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S.", &parts));
      second_ = second;
    }
    lines_ += stamp_;
    const auto thousandths = static_cast<unsigned>(std::chrono::floor<std::chrono::milliseconds>(now - second).count());
    for (const unsigned unit : {100u, 10u, 1u}) lines_ += static_cast<char>('0' + thousandths / unit % 10);
    lines_ += 'Z';
  }

  bool kept_;
  std::uint32_t worker_;
  std::string lines_, stamp_;
  std::chrono::seconds second_{};
  std::size_t lost_ = 0;
};

std::string_view bytes_of(nb::handle object) {
  char* data = nullptr;
  Py_ssize_t size = 0;
  if (PyBytes_AsStringAndSize(object.ptr(), &data, &size) != 0) throw nb::python_error();
  return {data, static_cast<std::size_t>(size)};
}

class ShortSearches {
public:
  ShortSearches(QuestionReader reader, nb::object costs, nb::object counts, nb::object lines, std::string prefix)
      : reader_(reader), owners_{costs, counts, lines}, costs_(nb::cast<Costs&>(costs)),
        counts_(nb::cast<SearchCounts&>(counts)), lines_(nb::cast<LogLines&>(lines)), prefix_(std::move(prefix)) {}

  std::string head;               // lines that every answer has
  std::vector<std::string> hosts; // that requests may name, in lower case; all if there are none

  // A model in the place of the one of that name; the first one that was given answers when none is named.
  // parts: forest, vectorizer, captions, options of the engine; nothing if it knows no words.
  // kinds: what costs call a question by the width of its beam in bits.
  // beam: of questions that bring none.
  void put(const std::string& name, const nb::tuple& parts, std::string begin, std::vector<std::size_t> kinds,
           std::uint32_t beam) {
    Model fresh{name, std::move(begin), std::move(kinds), beam, parts};
    if (parts.size() > 0) {
      fresh.forest = nb::cast<PyForest*>(parts[0]), fresh.vectorizer = nb::cast<Vectorizer*>(parts[1]);
      fresh.captions = nb::cast<Captions*>(parts[2]);
      fresh.engine = nb::cast<SearchOptions&>(parts[3]);
    }
    if (fresh.kinds.size() != widths || std::ranges::max(fresh.kinds) >= costs_.size())
      throw nb::value_error("kinds do not have an estimated cost for each width");
    for (Model& model : models_)
      if (model.name == name) return void(model = std::move(fresh));
    models_.push_back(std::move(fresh));
  }

  // What a request is called: by the name it brought, if that can stand in a log, or a new one.
  std::string id_of(std::optional<std::string_view> given) {
    if (given && is_id(*given)) return std::string(*given);
    char digits[16];
    return (prefix_ + "-").append(digits, std::to_chars(digits, digits + sizeof digits, ++number_, 16).ptr);
  }

  // The answer to POST (query is empty, body is JSON) or GET, or None.
  std::optional<nb::bytes> answer(bool posted, std::string_view query, const nb::list& headers, std::string_view body) {
    const auto begun = Clock::now();
    auto asked = posted ? reader_.read(body) : reader_.read_query(query);
    Model* const model = asked ? find_model(asked->model) : nullptr;
    if (!model || !model->forest) return std::nullopt;
    if (!asked->beam) asked->beam = model->beam;
    const Headers found = read(headers);
    if (!found.plain) return std::nullopt;
    const std::size_t kind = model->kinds[std::bit_width(asked->beam)];
    const double units = Costs::units(1.0, static_cast<double>(asked->text.size()), asked->k);
    if (costs_.of(kind, units) >= Costs::is_short) return std::nullopt;
    content_ = model->begin;
    const auto work_begun = Clock::now();
    std::uint64_t engine = 0;
    if (!search(*model, *asked, engine)) return std::nullopt;
    costs_.learn(kind, static_cast<double>(nanoseconds_since(work_begun)) / units);
    content_ += ",\"engine_us\":";
    put_fixed(static_cast<double>(engine) / 1e3, 1, content_);
    content_ += ",\"queue_us\":0.0}";
    const std::string id = id_of(found.id);
    put_answer(id);
    const std::uint64_t total = nanoseconds_since(begun);
    counts_.add(0, engine, total, asked->beam, 1);
    counts_.cells.data()[counts_.answers] += 1.0;
    lines_.add(id, posted ? "POST" : "GET", model->name, total, engine);
    return nb::bytes(answer_.data(), answer_.size());
  }

private:
  static constexpr std::size_t widths = 33;

  struct Model {
    std::string name, begin;
    std::vector<std::size_t> kinds;
    std::uint32_t beam;
    nb::tuple owner; // of what follows
    PyForest* forest = nullptr;
    Vectorizer* vectorizer = nullptr;
    Captions* captions = nullptr;
    SearchOptions engine{};
  };

  static bool is_id(std::string_view id) {
    const auto stands = [](char c) {
      return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '.' || c == '_' ||
             c == '-';
    };
    return !id.empty() && id.size() <= 64 && std::ranges::all_of(id, stands);
  }

  Model* find_model(std::string_view name) {
    if (name.empty()) return models_.empty() ? nullptr : models_.data();
    for (Model& model : models_)
      if (model.name == name) return &model;
    return nullptr;
  }

  // Appends hits to the content. False when the model is damaged: the application finds that too, and says so.
  bool search(const Model& model, const Question& asked, std::uint64_t& engine) {
    const Shelf<CallScratch>::Loan scratch(model.forest->shelf);
    const Found found = find(*model.forest, *model.vectorizer, asked.text,
                             {asked_of(model.engine, asked.k, asked.beam), nullptr}, *scratch);
    engine = found.nanoseconds;
    if (!found.sound) return false;
    try {
      put_hits(scratch->labels.data(), scratch->scores.data(), listed_by(*scratch), found.count, *model.captions,
               -std::numeric_limits<float>::infinity(), scratch->ids.size(), content_);
    } catch (const beamwood::Damaged&) {
      return false;
    }
    return model.forest->intact(); // names come of the same file
  }

  struct Headers {
    std::optional<std::string_view> id;
    bool plain = false; // one Host, and one of ours; none of those that must not come twice does
  };

  Headers read(const nb::list& headers) const {
    Headers found;
    int named = 0, tokens = 0;
    bool ours = false, encoded = false;
    for (nb::handle header : headers) {
      const nb::tuple pair = nb::cast<nb::tuple>(header);
      const std::string_view name = bytes_of(pair[0]);
      if (name == "x-request-id") found.id = bytes_of(pair[1]);
      if (name == "host") ++named, ours = hosts.empty() || is_ours(bytes_of(pair[1]));
      tokens += name == "authorization";
      encoded |= name == "transfer-encoding";
    }
    found.plain = named == 1 && ours && tokens <= 1 && !encoded;
    return found;
  }

  bool is_ours(std::string_view host) const {
    return std::ranges::any_of(hosts, [&](const std::string& name) {
      if (!host.starts_with(name)) return false;
      const std::string_view port = host.substr(name.size());
      return port.empty() || (port[0] == ':' && port.find_first_not_of("0123456789", 1) == port.npos);
    });
  }

  void put_answer(std::string_view id) {
    answer_ = "HTTP/1.1 200 OK\r\n";
    (answer_ += head) += "content-type: application/json\r\ncontent-length: ";
    json::put_number(std::uint64_t{content_.size()}, answer_);
    (((answer_ += "\r\nx-request-id: ") += id) += "\r\n\r\n") += content_;
  }

  QuestionReader reader_;
  std::array<nb::object, 3> owners_; // of what follows
  Costs& costs_;
  SearchCounts& counts_;
  LogLines& lines_;
  std::string prefix_;
  std::uint64_t number_ = 0;
  std::vector<Model> models_;
  std::string content_, answer_; // kept, so that their memory is
};

using Labels = nb::ndarray<const std::int64_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Scores = nb::ndarray<const float, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using ListedBy = nb::ndarray<const std::uint8_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

// A long text as bytes. To copy it, and to free it, takes a millisecond for every few megabytes, since each page is
// touched for the first time: that is done without Python's lock. Nobody else knows the new bytes yet.
nb::bytes given_up(std::string text) {
  auto made = nb::steal<nb::bytes>(PyBytes_FromStringAndSize(nullptr, static_cast<Py_ssize_t>(text.size())));
  if (!made.is_valid()) throw nb::python_error();
  char* const to = PyBytes_AsString(made.ptr());
  {
    const Unlocked released;
    std::memcpy(to, text.data(), text.size());
    std::string().swap(text);
  }
  return made;
}

// Answers to many queries as JSON objects with commas between them: no Python object per hit, and without the lock.
// known: terms of each query; one that has none has no hits.
nb::bytes rows_json(const Labels& labels, const Scores& scores, const In<std::int64_t>& known, const Captions& captions,
                    float least, const std::optional<ListedBy>& found) {
  const std::size_t rows = labels.shape(0), k = labels.shape(1);
  if (scores.shape(0) != rows || scores.shape(1) != k || known.shape(0) != rows ||
      (found && (found->shape(0) != rows || found->shape(1) != k)))
    throw nb::value_error("labels, scores and known terms do not have a row for each query");
  std::string out;
  {
    const Unlocked released;
    for (std::size_t i = 0; i < rows; ++i) {
      const auto terms = static_cast<std::size_t>(known.data()[i]);
      out += i ? ",{" : "{";
      put_hits(labels.data() + i * k, scores.data() + i * k, found ? found->data() + i * k : nullptr, terms ? k : 0,
               captions, least, terms, out);
      out += '}';
    }
  }
  return given_up(std::move(out));
}

} // namespace

void bind_serving(nb::module_& m) {
  m.def("rows_json", &rows_json, nb::arg("labels"), nb::arg("scores"), nb::arg("known"), nb::arg("captions"),
        nb::arg("least"), nb::arg("found").none() = nb::none(), "Hits and known terms of each query as JSON objects.");
  nb::class_<QuestionReader>(m, "QuestionReader", "Reads plain questions.")
      .def(nb::init<std::uint32_t, std::uint32_t, std::uint32_t, std::uint32_t>(), nb::arg("k"), nb::arg("beam"),
           nb::arg("most_k"), nb::arg("most_beam"))
      .def(
          "read",
          [](const QuestionReader& self, bool posted, nb::bytes words) -> nb::object {
            const auto asked = posted ? self.read(bytes_of(words)) : self.read_query(bytes_of(words));
            return asked ? nb::make_tuple(asked->text, asked->k, asked->beam, asked->model) : nb::object(nb::none());
          },
          nb::arg("posted"), nb::arg("words"), "(text, k, beam, model), or None: for tests.");
  nb::class_<Costs>(m, "Costs", "What questions of each kind take, in nanoseconds.")
      .def(nb::init<>())
      .def_prop_ro_static("short", [](nb::handle) { return Costs::is_short; })
      .def_static("units", &Costs::units, nb::arg("queries"), nb::arg("bytes"), nb::arg("k"))
      .def("add", &Costs::add)
      .def("of", &Costs::of, nb::arg("kind"), nb::arg("units"))
      .def("learn", &Costs::learn, nb::arg("kind"), nb::arg("took"));
  nb::class_<SearchCounts>(m, "SearchCounts", "Histograms of searches in a row of cells.")
      .def(
          "__init__",
          [](SearchCounts* self, const Out<double>& cells, const std::array<std::size_t, 6>& at,
             std::vector<double> seconds, std::vector<double> beams) {
            new (self)
                SearchCounts{cells, at[0], at[1], at[2], at[3], at[4], at[5], std::move(seconds), std::move(beams)};
          },
          nb::arg("cells"), nb::arg("at"), nb::arg("seconds"), nb::arg("beams"))
      .def("add", &SearchCounts::add, nb::arg("queue"), nb::arg("engine"), nb::arg("total"), nb::arg("beam"),
           nb::arg("rows"));
  nb::class_<LogLines>(m, "LogLines", "Lines about requests that wait to be written.")
      .def(nb::init<bool, std::uint32_t>(), nb::arg("kept"), nb::arg("worker"))
      .def("take", &LogLines::take);
  nb::class_<ShortSearches>(m, "ShortSearches", "Answers plain requests for searches that are short.")
      .def(nb::init<QuestionReader, nb::object, nb::object, nb::object, std::string>(), nb::arg("reader"),
           nb::arg("costs"), nb::arg("counts"), nb::arg("lines"), nb::arg("prefix"))
      .def_rw("head", &ShortSearches::head)
      .def_rw("hosts", &ShortSearches::hosts)
      .def("put", &ShortSearches::put, nb::arg("name"), nb::arg("parts"), nb::arg("begin"), nb::arg("kinds"),
           nb::arg("beam"))
      .def(
          "id_of",
          [](ShortSearches& self, std::optional<nb::bytes> given) {
            return self.id_of(given ? std::optional(bytes_of(*given)) : std::nullopt);
          },
          nb::arg("given").none())
      .def(
          "answer",
          [](ShortSearches& self, bool posted, const nb::bytes& query, const nb::list& headers, const nb::bytes& body) {
            return self.answer(posted, bytes_of(query), headers, bytes_of(body));
          },
          nb::arg("posted"), nb::arg("query"), nb::arg("headers"), nb::arg("body"));
}
