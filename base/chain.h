// Objects in a row, which belong to others: each can leave from where it stands, at once and without a search. Used by one thread.
#pragma once

namespace gyre {

/// What an object of a Chain derives from.
struct ChainLink {
  ChainLink *before = nullptr, *after = nullptr;
};

template <class T>
class Chain {
 public:
  Chain() = default;
  Chain(const Chain&) = delete;
  Chain& operator=(const Chain&) = delete;

  bool empty() const { return ends_.after == &ends_; }
  void clear() { ends_ = {&ends_, &ends_}; }
  void push_back(T& object) {
    ChainLink& link = object;
    link = {ends_.before, &ends_};
    ends_.before = ends_.before->after = &link;
  }
  static void erase(T& object) {
    const ChainLink& link = object;
    link.before->after = link.after;
    link.after->before = link.before;
  }

  /// The object that it shows may leave.
  class Iterator {
   public:
    explicit Iterator(ChainLink* link) : link_(link), next_(link->after) {}
    T& operator*() const { return static_cast<T&>(*link_); }
    Iterator& operator++() { return *this = Iterator(next_); }
    bool operator!=(const Iterator& other) const { return link_ != other.link_; }

   private:
    ChainLink *link_, *next_;
  };
  Iterator begin() { return Iterator(ends_.after); }
  Iterator end() { return Iterator(&ends_); }

 private:
  ChainLink ends_{&ends_, &ends_};
};

}  // namespace gyre
