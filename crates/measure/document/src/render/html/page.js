"use strict";
// Sorts and filters tables, shows the figures of marks on hover, focus and touch, and copies
// commands. The page has all its content without this.
(function () {
  function make(name, className, text) {
    var element = document.createElement(name);
    element.className = className;
    element.textContent = text;
    return element;
  }
  // A figure with its unit prefix, so that 1.2k comes after 900; nothing for a word.
  function figure(text) {
    var found = /^[-+]?[0-9][0-9.,]*(e[-+]?[0-9]+)?([kMGnu%]?)/.exec(text.trim().replace("\u2212", "-"));
    if (!found) { return null; }
    var scale = { k: 1e3, M: 1e6, G: 1e9, n: 1e-9, u: 1e-6 }[found[2]] || 1;
    return parseFloat(found[0].replace(/,/g, "")) * scale;
  }
  function sort(table, column, head) {
    var up = head.getAttribute("aria-sort") !== "ascending";
    var body = table.tBodies[0];
    var rows = Array.from(body.rows);
    rows.sort(function (a, b) {
      var one = a.cells[column].textContent, two = b.cells[column].textContent;
      var x = figure(one), y = figure(two);
      var order = x === null || y === null ? one.localeCompare(two) : x - y;
      return up ? order : -order;
    });
    rows.forEach(function (row) { body.appendChild(row); });
    table.querySelectorAll("th[aria-sort]").forEach(function (th) { th.removeAttribute("aria-sort"); });
    head.setAttribute("aria-sort", up ? "ascending" : "descending");
  }
  document.querySelectorAll("table.sorts").forEach(function (table) {
    var rows = table.tBodies[0].rows;
    if (4 > rows.length) { return; }
    var heads = table.tHead.rows[table.tHead.rows.length - 1].cells;
    Array.from(heads).forEach(function (head, column) {
      if (head.tagName !== "TH") { return; }
      var button = make("button", "", head.textContent);
      button.type = "button";
      button.title = "sort";
      head.textContent = "";
      head.appendChild(button);
      button.addEventListener("click", function () { sort(table, column, head); });
    });
    if (12 > rows.length) { return; }
    var label = make("label", "find", "Rows with ");
    var input = make("input", "", "");
    input.type = "search";
    label.appendChild(input);
    input.addEventListener("input", function () {
      var wanted = input.value.toLowerCase();
      Array.from(rows).forEach(function (row) {
        row.hidden = !row.textContent.toLowerCase().includes(wanted);
      });
    });
    table.parentElement.before(label);
  });

  var tip = null;
  function hide() { if (tip) { tip.remove(); tip = null; } }
  function show(mark) {
    hide();
    var box = mark.getBoundingClientRect();
    tip = make("div", "tip", mark.getAttribute("aria-label"));
    tip.setAttribute("role", "status");
    document.body.appendChild(tip);
    var most = document.documentElement.clientWidth - tip.offsetWidth - 8;
    tip.style.left = window.scrollX + Math.max(8, Math.min(box.left, most)) + "px";
    tip.style.top = window.scrollY + box.bottom + 6 + "px";
  }
  document.querySelectorAll("svg").forEach(function (picture) {
    var marks = Array.from(picture.querySelectorAll("g")).filter(function (g) {
      return g.firstElementChild ? g.firstElementChild.tagName === "title" : false;
    });
    if (marks.length === 0) { return; }
    picture.setAttribute("role", "group");
    marks.forEach(function (mark, i) {
      var title = mark.firstElementChild;
      mark.setAttribute("aria-label", title.textContent);
      mark.setAttribute("role", "img");
      title.remove();
      // One stop of the tabulator for a picture; arrows go from mark to mark.
      mark.setAttribute("tabindex", i === 0 ? "0" : "-1");
      mark.addEventListener("mouseenter", function () { show(mark); });
      mark.addEventListener("mouseleave", hide);
      mark.addEventListener("focus", function () { show(mark); });
      mark.addEventListener("blur", hide);
      mark.addEventListener("click", function () { mark.focus(); });
      mark.addEventListener("keydown", function (event) {
        var step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
        if (event.key === "Escape") { hide(); }
        if (!step || !marks[i + step]) { return; }
        event.preventDefault();
        mark.setAttribute("tabindex", "-1");
        marks[i + step].setAttribute("tabindex", "0");
        marks[i + step].focus();
      });
    });
  });

  if (!navigator.clipboard) { return; }
  document.querySelectorAll("pre").forEach(function (text) {
    var content = text.textContent;
    var button = make("button", "copy", "Copy");
    button.type = "button";
    button.addEventListener("click", function () {
      navigator.clipboard.writeText(content.trim()).then(function () { button.textContent = "Copied"; });
    });
    text.before(button);
  });
})();
