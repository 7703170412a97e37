-- Bodies are read once and soon deleted: compressing them on the way in cost a sixth of the ingest rate (performance.md §4).
alter table delivery alter column body set storage external;
